import { tool } from "@opencode-ai/plugin/tool"
import type { ToolState } from "@opencode-ai/sdk"
import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { checkReturn, isAtRest } from "../../../.opencode/baton/pass-over/result/work-output.ts"
import { promised } from "../../requirements.ts"
import { assistantMessage, completedTool, toolPart } from "../../support/opencode/stored-messages.ts"

const check = (args: unknown, earlierRefusals = 0) => checkReturn(tool.schema, args, earlierRefusals)
const MINIMAL = { status: "completed", summary: "All is well." }
const FINDING = { severity: "error", message: "It is wrong", path: "a.ts" }

describe("a return", () => {
  test(promised("pass-over.A2", "needs a status and a summary, and the rest is empty without being said"), () => {
    expect(check(MINIMAL)).toEqual({
      kind: "accepted",
      value: { ...MINIMAL, findings: [], recommendations: [], artifacts: [] },
      ignored: [],
    })
  })

  test(promised("pass-over.A2", "may say nothing with null or an empty text, as models do"), () => {
    const findings = [{ ...FINDING, line: null, fix: "" }, null]
    expect(check({ ...MINIMAL, decision: null, artifacts: null, findings })).toMatchObject({
      kind: "accepted",
      value: { findings: [FINDING] },
    })
  })

  test(promised(["pass-over.A2", "pass-over.B1"], "counts for nothing where it claims what the program sees"), () => {
    const artifacts = [
      { type: "file_modification", path: "a.ts", change: "modified" },
      { type: "tool_result", tool: "bash" },
      { type: "message", text: "Thanks" },
    ]
    expect(check({ ...MINIMAL, artifacts })).toMatchObject({
      kind: "accepted",
      value: { artifacts: [{ type: "message", text: "Thanks" }] },
      ignored: ["file_modification a.ts", "tool_result bash"],
    })
  })

  test.each([
    ["no summary", { status: "completed" }, "- summary: "],
    ["a blank summary", { ...MINIMAL, summary: "  " }, "- summary: "],
    ["a status that is the program's", { ...MINIMAL, status: "timeout" }, "- status: "],
    ["a finding without a message", { ...MINIMAL, findings: [{ severity: "error" }] }, "- findings.0.message: "],
    ["a line that is no number", { ...MINIMAL, findings: [{ ...FINDING, line: "3" }] }, "findings.0.line"],
    ["an unknown artifact", { ...MINIMAL, artifacts: [{ type: "poem" }] }, "- artifacts.0.type: "],
    ["an argument that is not there", { ...MINIMAL, result: 1 }, '"result"'],
    ["no object", "done", "- the arguments: "],
    ["nothing", undefined, "- the arguments: "],
  ])(promised("pass-over.A2", "with %s is refused with what is wrong"), (_what, args, problem) => {
    expect(check(args)).toMatchObject({ kind: "refused", text: expect.stringContaining(problem) })
  })

  test(promised("pass-over.A2", "is refused twice and ends the pass the third time"), () => {
    expect(check({})).toMatchObject({ text: expect.stringMatching(/Call pass_over_return again .* 2 times more\.$/) })
    expect(check({}, 1)).toMatchObject({ kind: "refused", text: expect.stringContaining("once more.") })
    expect(check({}, 2)).toMatchObject({
      kind: "failed",
      error: { code: "E021", message: "The subagent's return was not valid 3 times" },
    })
    expect(check(MINIMAL, 2).kind).toBe("accepted")
  })

  test(promised("pass-over.A2", "names five problems and counts the rest"), () => {
    const refused = check({ ...MINIMAL, recommendations: Array.from({ length: 12 }, () => 1) })
    expect(refused).toMatchObject({ text: expect.stringContaining("- and 7 more") })
  })

  test(promised("pass-over.A2", "of any shape is answered, never thrown at"), () => {
    const artifacts = fc.record({ status: fc.string(), summary: fc.anything(), artifacts: fc.anything() })
    fc.assert(
      fc.property(fc.oneof(fc.anything(), artifacts), (args) => {
        expect(["accepted", "refused"]).toContain(check(args).kind)
      }),
    )
  })
})

describe("a child that has returned", () => {
  const RUNNING: ToolState = { status: "running", input: {}, time: { start: 1 } }
  const FAILED: ToolState = { status: "error", input: {}, error: "no", time: { start: 1, end: 2 } }
  const running = toolPart("bash", RUNNING, "call_a")
  const done = toolPart("bash", completedTool(""), "call_a")

  test.each([
    [true, "nothing else was begun", [], []],
    [true, "what was begun is done", [done], ["call_a"]],
    [true, "what was begun has failed", [toolPart("bash", FAILED, "call_a")], ["call_a"]],
    [true, "an earlier step is over", [done], []],
    [false, "a tool is at work", [running], ["call_a"]],
    [false, "a tool was called that nobody was asked about", [running], []],
    [false, "what was begun is not stored yet", [], ["call_a"]],
  ])(promised("pass-over.B1", "is at rest: %s when %s"), (expected, _when, parts, begun) => {
    const returning = toolPart("pass_over_return", RUNNING, "call_return")
    expect(isAtRest([{ ...assistantMessage(), parts: [...parts, returning] }], new Set(begun))).toBe(expected)
  })
})
