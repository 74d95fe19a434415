import { createRequire } from "node:module"
import { fileURLToPath } from "node:url"
import type { tool } from "@opencode-ai/plugin/tool"

/** zod, as the plugin package carries it. */
export type Zod = typeof tool.schema

const PACKAGE = "@opencode-ai/plugin/tool"

let loaded: Zod | undefined
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
    (module) => {
      loaded = module.tool.schema
      return loaded
    },
    (error: unknown) => {
      loading = undefined
      throw unloadable(error)
    },
  )
  return loading
}

/**
 * The same without waiting, for OpenCode asks a plugin for its tools synchronously. What `loadZod` has begun in the
 * background is used where it is ready.
 *
 * @throws as `loadZod` does
 */
export const requireZod = (): Zod => {
  if (loaded) return loaded
  try {
    // The package exports itself to `import` alone, so that its file has to be found first.
    const found: unknown = createRequire(import.meta.url)(fileURLToPath(import.meta.resolve(PACKAGE)))
    loaded = (found as typeof import("@opencode-ai/plugin/tool")).tool.schema
    return loaded
  } catch (error) {
    throw unloadable(error)
  }
}
