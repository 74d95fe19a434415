import type { ToolContext } from "@opencode-ai/plugin"
import { describe, expect, test, vi } from "vitest"
import { z } from "zod"
import { createHandoffTools } from "../../../.opencode/baton/handoff/tools.ts"
import { createUserTurns } from "../../../.opencode/baton/handoff/user-turns.ts"
import { ARGUMENT_TYPES as types } from "../../../.opencode/baton/host/schema.ts"
import { createTools as createLearningTools } from "../../../.opencode/baton/learning/tools.ts"
import { promised } from "../../requirements.ts"

test.each([
  ["handoff_session", {}, "prompt"],
  ["handoff_session", { prompt: 7 }, "prompt"],
  ["handoff_session", { prompt: "x", files: "src/a.ts" }, "files"],
  ["read_session", {}, "sessionID"],
  ["read_session", { sessionID: "ses_1", limit: "100" }, "limit"],
  ["read_session", { sessionID: "ses_1", tools: "all" }, "tools"],
  ["learned", { query: 7 }, "query"],
  ["forget", { id: "lrn-1a2b3c" }, "reason"],
  ["forget", null, "expected object"],
])(promised("faults.F1", "the tool %s with %j does nothing and says what was wrong: %s"), async (name, args, wrong) => {
  const load = vi.fn(() => Promise.reject(new Error("loaded")))
  const tools = { ...createHandoffTools({ load, turns: createUserTurns() }), ...createLearningTools(load) }
  const answer = await tools[name]?.execute(args as never, { sessionID: "ses_1" } as unknown as ToolContext)
  expect(answer).toContain("The arguments are not valid; nothing was done.")
  expect(answer).toContain(wrong)
  expect(load).not.toHaveBeenCalled()
})

const MADE = {
  prompt: types.string("What to know"),
  path: types.optionalString("Where"),
  files: types.optionalStrings("Which files"),
  limit: types.optionalNumber("How many"),
  any: types.optionalBoolean("Whether any"),
  tools: types.optionalChoice(["none", "full"], "How much"),
}

const WANTED = {
  prompt: z.string().describe("What to know"),
  path: z.string().optional().describe("Where"),
  files: z.array(z.string()).optional().describe("Which files"),
  limit: z.number().optional().describe("How many"),
  any: z.boolean().optional().describe("Whether any"),
  tools: z.enum(["none", "full"]).optional().describe("How much"),
}

describe("the types of a tool's arguments, made without zod", () => {
  test.each(["input", "output"] as const)(
    promised("handoff.E2", "the types of a tool's arguments, made without zod, are zod's own, in JSON Schema for %s"),
    (io) => {
      expect(z.toJSONSchema(z.object(MADE), { io })).toEqual(z.toJSONSchema(z.object(WANTED), { io }))
    },
  )

  test(
    promised(
      "handoff.E2",
      "the types of a tool's arguments let through what a model writes, which Baton checks itself",
    ),
    () => {
      const written = { prompt: 7, files: "src/a.ts", tools: "all" }
      expect(z.object(MADE).parse(written)).toEqual(written)
    },
  )
})
