import type { ToolDefinition } from "@opencode-ai/plugin"
import type { requireZodCore } from "./schema.ts"

type Argument = ToolDefinition["args"][string]

/** The kinds of arguments that a tool may have, each with what it is for. */
export type ArgumentTypes = {
  string(description: string): Argument
  optionalString(description: string): Argument
  optionalStrings(description: string): Argument
  optionalNumber(description: string): Argument
  optionalBoolean(description: string): Argument
  optionalChoice(choices: readonly string[], description: string): Argument
}

/** What the model is told of a tool's arguments; `withCheckedArguments` checks what it then writes. */
export const createArgumentTypes = (core: ReturnType<typeof requireZodCore>): ArgumentTypes => {
  // OpenCode reads the description off the object; zod's own way of keeping it is not in the core.
  const described = (type: Argument, description: string): Argument => Object.assign(type, { description })
  const optional = (innerType: Argument, description: string): Argument =>
    described(new core.$ZodOptional({ type: "optional", innerType }), description)
  const text = () => new core.$ZodString({ type: "string" })
  return {
    string: (description) => described(text(), description),
    optionalString: (description) => optional(text(), description),
    optionalStrings: (description) => optional(new core.$ZodArray({ type: "array", element: text() }), description),
    optionalNumber: (description) => optional(new core.$ZodNumber({ type: "number" }), description),
    optionalBoolean: (description) => optional(new core.$ZodBoolean({ type: "boolean" }), description),
    optionalChoice: (choices, description) => {
      const entries = Object.fromEntries(choices.map((choice) => [choice, choice]))
      return optional(new core.$ZodEnum({ type: "enum", entries }), description)
    },
  }
}
