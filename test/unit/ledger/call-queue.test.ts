import { expect, test } from "vitest"
import { createCallQueue, FIRST_REST_MS, LONGEST_REST_MS } from "../../../.opencode/baton/ledger/client.ts"
import { promised } from "../../requirements.ts"

const startedCall = () => {
  let end = () => {}
  const running = new Promise<void>((resolve) => {
    end = resolve
  })
  return { end, call: () => running }
}

test(promised("ledger.D1", "runs one call at a time, in their order"), async () => {
  const queue = createCallQueue()
  let running = 0
  let most = 0
  const order: number[] = []
  const calls = Array.from({ length: 20 }, (_, at) =>
    queue.take(5000, async () => {
      running += 1
      most = Math.max(most, running)
      await new Promise((resolve) => setImmediate(resolve))
      order.push(at)
      running -= 1
    }),
  )
  await Promise.all(calls)
  expect(most).toBe(1)
  expect(order).toEqual(Array.from({ length: 20 }, (_, at) => at))
})

test(promised("ledger.D1", "counts waiting: a reader behind a slow writer gives up at its own deadline"), async () => {
  const queue = createCallQueue()
  const slow = startedCall()
  const writing = queue.take(5000, slow.call)
  let ran = false
  const reading = await queue.take(20, async () => {
    ran = true
  })
  expect(reading).toEqual({ kind: "busy" })
  slow.end()
  await writing
  expect(await queue.take(5000, async () => "next")).toEqual({ kind: "ran", value: "next" })
  expect(ran).toBe(false)
})

test("gives a call only what is left of its deadline", async () => {
  let now = 0
  const queue = createCallQueue(() => now)
  const first = queue.take(5000, async () => {
    now += 1500
  })
  const second = await queue.take(2000, async (remaining) => remaining())
  await first
  expect(second).toEqual({ kind: "ran", value: 500 })
})

test(promised("ledger.D1", "leaves a hung program alone, longer each time, until it answers again"), async () => {
  let now = 0
  const queue = createCallQueue(() => now)
  expect(queue.open()).toBe(FIRST_REST_MS)
  now += FIRST_REST_MS - 1
  expect(await queue.take(5000, async () => "ran")).toEqual({ kind: "resting", forMs: 1 })
  now += 1
  expect(await queue.take(5000, async () => "ran")).toEqual({ kind: "ran", value: "ran" })
  expect(queue.open()).toBe(2 * FIRST_REST_MS)
  for (let times = 0; times < 10; times += 1) queue.open()
  expect(queue.open()).toBe(LONGEST_REST_MS)
  queue.close()
  expect(queue.open()).toBe(FIRST_REST_MS)
})

test("goes on after a call that throws", async () => {
  const queue = createCallQueue()
  await expect(queue.take(5000, () => Promise.reject(new Error("broken")))).rejects.toThrow("broken")
  expect(await queue.take(5000, async () => "next")).toEqual({ kind: "ran", value: "next" })
})
