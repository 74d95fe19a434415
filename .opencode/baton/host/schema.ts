import { createRequire } from "node:module"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import type { tool } from "@opencode-ai/plugin/tool"

/** zod, as the plugin package carries it. */
export type Zod = typeof tool.schema

let loading: Promise<Zod> | undefined

const unloadable = (cause: unknown): Error =>
  new Error("zod could not be loaded from .opencode/node_modules; start OpenCode once with the network on", { cause })

/**
 * Loads zod at its first use: importing it takes about 25 ms, which init cannot spend (see docs/benchmarks.md).
 *
 * @throws when `.opencode/node_modules` is missing (OpenCode installs it at its first start)
 */
export const loadZod = (): Promise<Zod> => {
  loading ??= import("@opencode-ai/plugin/tool").then(
    (module) => module.tool.schema,
    (error: unknown) => {
      loading = undefined
      throw unloadable(error)
    },
  )
  return loading
}

export type ZodCore = typeof import("zod/v4/core")

/**
 * zod's own classes without the rest of it, without waiting, for OpenCode asks a plugin for its tools synchronously and
 * right before the first request. Loading them takes a third of the time that all of zod takes (docs/benchmarks.md).
 *
 * @throws as `loadZod` does
 */
export const requireZodCore = (): Pick<ZodCore, CoreClass> => {
  const require = createRequire(import.meta.url)
  try {
    const core = fileURLToPath(import.meta.resolve("zod/v4/core"))
    const found: unknown = require(join(dirname(core), "schemas.js"))
    if (isCore(found)) return found
  } catch {
    // Another version of zod keeps its files elsewhere: its public entry is slower and always there.
  }
  try {
    const found: unknown = require("zod/v4/core")
    if (isCore(found)) return found
    throw new Error(`${CORE_CLASSES.join(", ")} are not all in zod's core`)
  } catch (error) {
    throw unloadable(error)
  }
}

const CORE_CLASSES = ["$ZodString", "$ZodNumber", "$ZodBoolean", "$ZodArray", "$ZodEnum", "$ZodOptional"] as const
type CoreClass = (typeof CORE_CLASSES)[number]

const isCore = (value: unknown): value is Pick<ZodCore, CoreClass> =>
  typeof value === "object" &&
  value !== null &&
  CORE_CLASSES.every((name) => typeof Reflect.get(value, name) === "function")
