import type { ToolState } from "@opencode-ai/sdk"
import { describe, expect, test } from "vitest"
import { isAtRest } from "../../../.opencode/baton/pass-over/result/work-output.ts"
import { promised } from "../../requirements.ts"
import { assistantMessage, completedTool, toolPart } from "../../support/opencode/stored-messages.ts"

const RUNNING: ToolState = { status: "running", input: {}, time: { start: 1 } }
const FAILED: ToolState = { status: "error", input: {}, error: "no", time: { start: 1, end: 2 } }
const RETURNING = toolPart("pass_over_return", RUNNING, "call_return")

const transcript = (...parts: (typeof RETURNING)[]) => [{ ...assistantMessage(), parts: [...parts, RETURNING] }]

describe("a child that has returned is at rest", () => {
  test.each([
    ["nothing else was begun", transcript(), []],
    ["what was begun is done", transcript(toolPart("bash", completedTool("", ""), "call_a")), ["call_a"]],
    ["what was begun has failed", transcript(toolPart("bash", FAILED, "call_a")), ["call_a"]],
    ["an earlier step is over", transcript(toolPart("bash", completedTool("", ""), "call_a")), []],
  ])(promised("pass-over.B1", "when %s"), (_when, messages, begun) => {
    expect(isAtRest(messages, new Set(begun))).toBe(true)
  })

  test.each([
    ["a tool is at work", transcript(toolPart("bash", RUNNING, "call_a")), ["call_a"]],
    ["a tool was called that nobody was asked about", transcript(toolPart("task", RUNNING, "call_a")), []],
    ["what was begun is not stored yet", transcript(), ["call_a"]],
  ])(promised("pass-over.B1", "but not while %s"), (_while, messages, begun) => {
    expect(isAtRest(messages, new Set(begun))).toBe(false)
  })
})
