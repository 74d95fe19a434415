import { describe, expect, test } from "vitest"
import { createLruMap, lazy } from "../../../.opencode/baton/host/async.ts"
import { promised } from "../../requirements.ts"

test(promised("faults.F2", "what is loaded at first use is loaded once, and again when that failed"), async () => {
  let tries = 0
  const load = lazy(async () => {
    tries++
    if (tries === 1) throw new Error("no such file")
    return "feature"
  })
  expect(tries).toBe(0)
  expect(load.current).toBeUndefined()
  const [first, beside] = [load(), load()]
  const current = load.current
  await expect(first).rejects.toThrow("no such file")
  await expect(beside).rejects.toThrow("no such file")
  expect([await current, load.current]).toEqual([undefined, undefined])
  expect(await Promise.all([load(), load()])).toEqual(["feature", "feature"])
  expect([await load.current, await load.loaded]).toEqual(["feature", "feature"])
  expect(tries).toBe(2)
})

describe("what is remembered by session", () => {
  test("what is remembered by session is bounded: what was not asked for or set for longest falls out and is told of", () => {
    const evicted: [string, number][] = []
    const recent = createLruMap<number>({ limit: 2, onEvict: (...entry) => evicted.push(entry) })
    recent.set("ses_1", 1)
    recent.set("ses_2", 2)
    expect(recent.get("ses_1")).toBe(1)
    recent.set("ses_3", 3)
    expect(evicted).toEqual([["ses_2", 2]])
    expect([recent.has("ses_1"), recent.has("ses_2"), recent.has("ses_3")]).toEqual([true, false, true])
  })
})
