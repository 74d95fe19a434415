import { existsSync } from "node:fs"
import type { ToolContext, ToolDefinition } from "@opencode-ai/plugin"
import type { tool } from "@opencode-ai/plugin/tool"
import type { output, ZodType } from "zod"

export const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null

/** An event of OpenCode's. Its fields differ between versions, and the SDK's types cover older ones: each is checked before use. */
export type RawEvent = { readonly type: string; readonly properties?: unknown }

export const field = (value: unknown, ...path: string[]): unknown =>
  path.reduce<unknown>((found, key) => (isRecord(found) ? found[key] : undefined), value)

/** A number that OpenCode or a statefile reports; 0 for none. */
export const count = (value: unknown): number => (typeof value === "number" && value > 0 ? value : 0)

export const text = (value: unknown): string | undefined =>
  typeof value === "string" && value !== "" ? value : undefined

/** All tokens of a message, or of a step of it. */
export const tokensIn = (info: unknown): number =>
  ["input", "output", "reasoning"].reduce((sum, name) => sum + count(field(info, "tokens", name)), 0) +
  count(field(info, "tokens", "cache", "read")) +
  count(field(info, "tokens", "cache", "write"))

export const sessionOf = (properties: unknown): string | undefined =>
  text(field(properties, "sessionID")) ??
  text(field(properties, "info", "sessionID")) ??
  text(field(properties, "info", "id"))

/** The permission that was answered, on every version. */
export const answeredPermission = (properties: unknown): string | undefined =>
  text(field(properties, "requestID")) ?? text(field(properties, "permissionID"))

/** zod, as OpenCode's plugin package has it. */
export type Zod = typeof tool.schema

/** The values that a schema lets through. */
export type Parsed<Schema extends (z: Zod) => ZodType> = output<ReturnType<Schema>>

/** Beside an installed bundle; the installer puts it there. */
const CARRIED = new URL("../zod/classic/external.js", import.meta.url)

/** In a clone, by its path: where a package was missing once, Bun does not find it by its name later. */
const INSTALLED = new URL("../../node_modules/zod/index.js", import.meta.url)

/** In a clone OpenCode has installed it, OpenCode 1 with its plugin package; the npm package has it as its own dependency. */
const findZod = async (): Promise<Zod> => {
  if (existsSync(CARRIED)) return import(CARRIED.href)
  try {
    return (await import("@opencode-ai/plugin/tool")).tool.schema
  } catch {
    const found: Partial<Zod> = await (existsSync(INSTALLED) ? import(INSTALLED.href) : import("zod"))
    // A project's own may be an older one.
    if (found.strictObject && found.iso) return found as Zod
    throw new Error("the zod that was found is older than version 4")
  }
}

let loading: Promise<Zod> | undefined

/**
 * Loads zod at its first use: importing it takes about 25 ms, too long for init (see docs/benchmarks.md).
 *
 * @throws Error in a clone that OpenCode was not started in yet
 */
export const loadZod = (): Promise<Zod> => {
  loading ??= findZod().catch((cause: unknown) => {
    loading = undefined
    throw new Error("zod is not installed: start OpenCode here once with the network on, or install Baton", { cause })
  })
  return loading
}

type Argument = ToolDefinition["args"][string]

export type JSONSchema = {
  readonly type?: "string" | "number" | "integer" | "boolean" | "array" | "object"
  readonly description?: string
  readonly const?: string
  readonly enum?: readonly string[]
  readonly items?: JSONSchema
  readonly anyOf?: readonly JSONSchema[]
  readonly properties?: Readonly<Record<string, JSONSchema>>
  readonly required?: readonly string[]
  readonly additionalProperties?: JSONSchema | false
}

/**
 * Builds a tool argument for OpenCode's zod without loading zod. OpenCode asks for a plugin's tools before the first request
 * of every session, and loading zod's core took 15 ms of each start on 1.2.15 (docs/benchmarks.md).
 *
 * zod accepts any object with these traits, since a program may load several copies of zod, and asks it for its JSON Schema.
 * This object accepts any value: `validated` checks the model's arguments.
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

/** The argument types of tools. The model sees each description. */
export const ARGUMENT_TYPES = {
  string: (description: string) => argument({ type: "string" }, description),
  choice: (choices: readonly string[], description: string) => argument({ type: "string", enum: choices }, description),
  optional: (schema: JSONSchema, description: string) => argument(schema, description, "optional"),
  optionalString: (description: string) => argument({ type: "string" }, description, "optional"),
  optionalStrings: (description: string) =>
    argument({ type: "array", items: { type: "string" } }, description, "optional"),
  optionalNumber: (description: string) => argument({ type: "number" }, description, "optional"),
  optionalBoolean: (description: string) => argument({ type: "boolean" }, description, "optional"),
  optionalChoice: (choices: readonly string[], description: string) =>
    argument({ type: "string", enum: choices }, description, "optional"),
} as const

/**
 * Wraps a tool's `execute`, so that it runs only with valid arguments; otherwise the model is told the error.
 * OpenCode tells the model the types but does not check its arguments (seen on 1.2.15 and 1.18.33).
 */
export const validated =
  <Arguments>(
    schema: (z: Zod) => ZodType<Arguments>,
    run: (args: Arguments, context: ToolContext) => Promise<string>,
  ): ((args: unknown, context: ToolContext) => Promise<string>) =>
  async (args, context) => {
    const z = await loadZod()
    const parsed = schema(z).safeParse(args)
    if (parsed.success) return run(parsed.data, context)
    return `The arguments are not valid; nothing was done.\n${z.prettifyError(parsed.error)}\nMend them and call again.`
  }
