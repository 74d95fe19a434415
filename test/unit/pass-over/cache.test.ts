import { describe, expect, test } from "vitest"
import type { Artifact, WorkStatus } from "../../../.opencode/baton/pass-over/contract.ts"
import { cacheKeyOf, isRepeatable, type Question } from "../../../.opencode/baton/pass-over/store/passes.ts"
import { promised } from "../../requirements.ts"
import { workOutput } from "../../support/opencode/pass-over-values.ts"

const file = (path: string, hash: string | null) => ({ path, hash, content: null })
const QUESTION: Question = {
  subagent: "audit",
  definition: "v1",
  context: { objective: "Review", files: [file("a.ts", "1"), file("b.ts", "2")] },
}
const { context } = QUESTION
const modification: Artifact = {
  type: "file_modification",
  path: "a.ts",
  change: "added",
  old_content: null,
  new_content: "",
  is_binary: false,
  is_large: false,
  old_hash: null,
  new_hash: "1",
  old_mode: null,
  new_mode: "100644",
  by: "tool",
}

describe("a question", () => {
  test(
    promised("pass-over.A7", "is the same in whatever order its files are named, and however they are shown"),
    () => {
      const shown = { path: "a.ts", hash: "1", content: "text", note: "short" }
      const other = { ...QUESTION, context: { ...context, files: [file("b.ts", "2"), shown] } }
      expect(cacheKeyOf(other)).toBe(cacheKeyOf(QUESTION))
      expect(cacheKeyOf(QUESTION)).toMatch(/^[0-9a-f]{64}$/)
    },
  )

  test.each<[string, Question]>([
    ["subagent", { ...QUESTION, subagent: "scout" }],
    ["definition of the subagent", { ...QUESTION, definition: "v2" }],
    ["objective", { ...QUESTION, context: { ...context, objective: "Review!" } }],
    ["background", { ...QUESTION, context: { ...context, background: "x" } }],
    ["expected answer", { ...QUESTION, context: { ...context, expected: "x" } }],
    ["content of a file", { ...QUESTION, context: { ...context, files: [file("a.ts", "1"), file("b.ts", "3")] } }],
    ["name of a file", { ...QUESTION, context: { ...context, files: [file("a.ts", "1"), file("c.ts", "2")] } }],
    ["number of files", { ...QUESTION, context: { ...context, files: [file("a.ts", "1")] } }],
  ])(promised("pass-over.A7", "with another %s is another one"), (_what, other) => {
    expect(cacheKeyOf(other)).not.toBe(cacheKeyOf(QUESTION))
  })

  test(promised("pass-over.A7", "about a file that could not be read is never known"), () => {
    expect(cacheKeyOf({ ...QUESTION, context: { ...context, files: [file("a.ts", null)] } })).toBeNull()
  })
})

describe("an output", () => {
  test.each<[boolean, WorkStatus, readonly Artifact[]]>([
    [true, "completed", [{ type: "message", text: "m" }]],
    [false, "completed", [modification]],
    [false, "partial", []],
    [false, "failed", []],
    [false, "timeout", []],
  ])(promised("pass-over.A7", "may be given again: %s for a %s one"), (expected, status, artifacts) => {
    expect(isRepeatable(workOutput({ status, artifacts }))).toBe(expected)
  })
})
