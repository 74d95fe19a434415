import { tool } from "@opencode-ai/plugin/tool"
import { describe, expect, test } from "vitest"
import { contractSchemas } from "../../../.opencode/baton/pass-over/contract.ts"
import { ERRORS, type ErrorCode, passOverError, renderError } from "../../../.opencode/baton/pass-over/errors.ts"
import { promised } from "../../requirements.ts"

const schema = contractSchemas(tool.schema).error
const codes = Object.keys(ERRORS) as ErrorCode[]

/** The table in the documentation. */
const DOCUMENT = [
  ["E001", "INVALID_SUBAGENT", false],
  ["E002", "CHAIN_DEPTH_EXCEEDED", false],
  ["E003", "CYCLE_DETECTED", false],
  ["E010", "SUBAGENT_TIMEOUT", true],
  ["E011", "SUBAGENT_CRASHED", true],
  ["E020", "RETURN_CONTEXT_LOST", false],
  ["E021", "INVALID_WORK_OUTPUT", false],
  ["E030", "CONFIG_INVALID", false],
] as const

describe("the errors", () => {
  test.each(DOCUMENT)(promised("pass-over.E1", "%s is %s, recoverable: %s"), (code, name, recoverable) => {
    expect(passOverError(code, { message: "m", cause: "c" })).toMatchObject({ code, name, recoverable })
  })

  test.each(codes)(promised("pass-over.E1", "%s says what failed, why, and what to do now"), (code) => {
    const error = passOverError(code, { message: "It failed", cause: "This was found" })
    expect(schema.parse(error)).toEqual(error)
    expect(error.next_step).toBe(ERRORS[code].next_step)
    expect(renderError(error).split("\n")).toEqual([
      `${code} ${ERRORS[code].name}: It failed`,
      "Cause: This was found",
      `Next: ${error.next_step}`,
    ])
    expect(ERRORS[code].next_step).toMatch(/^[A-Z].*\.$/)
    expect(ERRORS[code].meaning).not.toMatch(/\.$/)
  })

  test(
    promised("pass-over.E1", "a next step that is known better stands in for the usual one, and no cause for none"),
    () => {
      const error = passOverError("E011", { message: "m", cause: "", nextStep: "Wait." })
      expect(renderError(error)).toBe("E011 SUBAGENT_CRASHED: m\nNext: Wait.")
    },
  )

  test(promised("pass-over.E1", "no two codes share a name"), () => {
    expect(new Set(codes.map((code) => ERRORS[code].name)).size).toBe(codes.length)
  })
})
