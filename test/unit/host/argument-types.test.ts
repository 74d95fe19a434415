import { describe, expect, test } from "vitest"
import { z } from "zod"
import { ARGUMENT_TYPES as types } from "../../../.opencode/baton/host/schema.ts"
import { promised } from "../../requirements.ts"

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
    promised("handoff.E2", "are to zod what its own are, in JSON Schema for %s"),
    (io) => {
      expect(z.toJSONSchema(z.object(MADE), { io })).toEqual(z.toJSONSchema(z.object(WANTED), { io }))
    },
  )

  test(promised("handoff.E2", "let through what a model writes, which Baton checks itself"), () => {
    const written = { prompt: 7, files: "src/a.ts", tools: "all" }
    expect(z.object(MADE).parse(written)).toEqual(written)
  })
})
