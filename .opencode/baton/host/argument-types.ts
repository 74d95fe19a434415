import type { ToolDefinition } from "@opencode-ai/plugin"

type Argument = ToolDefinition["args"][string]

type JSONSchema = {
  readonly type: "string" | "number" | "boolean" | "array"
  readonly enum?: readonly string[]
  readonly items?: JSONSchema
}

/**
 * An argument as OpenCode's zod wants it, without zod: OpenCode asks for a plugin's tools before the first request of every
 * session, and loading zod's core for that took 15 ms of each start on 1.2.15 (docs/benchmarks.md).
 * zod takes what carries these traits for its own, since several copies of it often meet in one program, and asks it for its
 * JSON Schema. This one lets any value through: `withCheckedArguments` checks what a model writes.
 */
const argument = (schema: JSONSchema, description: string, way?: "optional"): Argument => {
  const zod = {
    def: { type: "unknown" },
    traits: new Set(["$ZodType"]),
    toJSONSchema: () => ({ ...schema, description }),
    run: <T>(payload: T): T => payload,
    ...(way ? { optin: way, optout: way } : {}),
  }
  // OpenCode 1.18 reads the description off the object.
  return { _zod: zod, description } as unknown as Argument
}

/** The kinds of arguments that a tool may have, each with what it is for; what the model is told of them. */
export const ARGUMENT_TYPES = {
  string: (description: string) => argument({ type: "string" }, description),
  optionalString: (description: string) => argument({ type: "string" }, description, "optional"),
  optionalStrings: (description: string) =>
    argument({ type: "array", items: { type: "string" } }, description, "optional"),
  optionalNumber: (description: string) => argument({ type: "number" }, description, "optional"),
  optionalBoolean: (description: string) => argument({ type: "boolean" }, description, "optional"),
  optionalChoice: (choices: readonly string[], description: string) =>
    argument({ type: "string", enum: choices }, description, "optional"),
} as const
