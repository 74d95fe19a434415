import { expect, test } from "vitest"
import { loadOnce } from "../../../.opencode/baton/host/async.ts"
import { promised } from "../../requirements.ts"

test(promised("faults.F2", "what is loaded at first use is loaded once, and again when that failed"), async () => {
  let tries = 0
  const load = loadOnce(async () => {
    tries++
    if (tries === 1) throw new Error("no such file")
    return "feature"
  })
  expect(tries).toBe(0)
  expect(load.loaded()).toBeUndefined()
  const [first, beside] = [load(), load()]
  await expect(first).rejects.toThrow("no such file")
  await expect(beside).rejects.toThrow("no such file")
  expect(await Promise.all([load(), load()])).toEqual(["feature", "feature"])
  expect(load.loaded()).toBe("feature")
  expect(tries).toBe(2)
})
