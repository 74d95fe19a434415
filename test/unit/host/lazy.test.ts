import { expect, test } from "vitest"
import { lazy } from "../../../.opencode/baton/host/async.ts"
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
  expect(await load.current).toBe("feature")
  expect(tries).toBe(2)
})
