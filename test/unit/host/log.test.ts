import { describe, expect, test } from "vitest"
import { z } from "zod"
import { createLog, describeError, truncate } from "../../../.opencode/baton/host/log.ts"
import { promised } from "../../requirements.ts"

describe("an error in the log", () => {
  test(promised("compaction.C9", "is one line, whatever its message holds"), () => {
    const { error } = z.object({ version: z.literal(1), count: z.number() }).safeParse({ version: 2 })
    expect(error?.message).toContain("\n")
    expect(describeError(error)).toMatch(/^ZodError: .*version.*count.*$/)
  })

  test(promised("compaction.C9", "is no longer than a person reads"), () => {
    expect(describeError(new Error("x".repeat(10_000)))).toHaveLength(500)
  })
})

describe("a client that cannot log", () => {
  const fail = (): never => {
    throw new Error("no log")
  }
  test.each([
    ["throws", fail],
    ["rejects", () => Promise.reject(new Error("no log"))],
    ["never answers", () => new Promise(() => {})],
    ["answers nothing", () => undefined],
  ])(promised(["faults.F1", "faults.F2"], "and that %s disturbs nobody"), async (_, log) => {
    const unhandled: unknown[] = []
    const note = (reason: unknown) => unhandled.push(reason)
    process.on("unhandledRejection", note)
    createLog({ app: { log } } as never, "feature").warn("something happened")
    await new Promise((resolve) => setImmediate(resolve))
    process.off("unhandledRejection", note)
    expect(unhandled).toEqual([])
  })
})

test(promised("handoff.E2", "a text is cut between characters and never inside one"), () => {
  expect(truncate("ab😀cd", 3)).toBe("ab")
  expect(truncate("ab😀cd", 4)).toBe("ab😀")
  expect(truncate("short", 10)).toBe("short")
})
