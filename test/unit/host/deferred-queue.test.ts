import { afterEach, beforeEach, expect, test, vi } from "vitest"
import { createDeferredQueue } from "../../../.opencode/baton/host/async.ts"

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const open = () => {
  const putOff = createDeferredQueue()
  const done: string[] = []
  const add = (name: string): void => putOff.add(async () => void done.push(name))
  return { putOff, done, add }
}

test("work is done once the request that was prepared is on its way, in its order", async () => {
  const { putOff, done, add } = open()
  add("one")
  add("two")
  await vi.advanceTimersByTimeAsync(100)
  expect(done).toEqual([])
  putOff.requestStarting()
  expect(done).toEqual([])
  await vi.advanceTimersByTimeAsync(100)
  expect(done).toEqual(["one", "two"])
})

test("work that no request follows is done all the same", async () => {
  const { done, add } = open()
  add("one")
  await vi.advanceTimersByTimeAsync(1_000)
  expect(done).toEqual(["one"])
})

test("whoever needs the work waits for all of it, also for what has begun", async () => {
  const { putOff, done, add } = open()
  let release = (): void => {}
  putOff.add(() => new Promise((resolve) => (release = resolve)))
  void putOff.flush()
  add("two")
  const settled = putOff.flush().then(() => done.push("settled"))
  await vi.advanceTimersByTimeAsync(10)
  expect(done).toEqual([])
  release()
  await settled
  expect(done).toEqual(["two", "settled"])
})

test("no timer waits for work that is done", async () => {
  const { putOff, done, add } = open()
  add("one")
  putOff.requestStarting()
  await putOff.flush()
  expect(done).toEqual(["one"])
  expect(vi.getTimerCount()).toBe(0)
})

test("a request may be given longer to be on its way", async () => {
  const putOff = createDeferredQueue({ onItsWayMs: 200 })
  const done: string[] = []
  putOff.add(async () => void done.push("one"))
  putOff.requestStarting()
  await vi.advanceTimersByTimeAsync(100)
  expect(done).toEqual([])
  await vi.advanceTimersByTimeAsync(150)
  expect(done).toEqual(["one"])
})
