import type { tool } from "@opencode-ai/plugin/tool"

/** zod, as the plugin package carries it. */
export type Zod = typeof tool.schema

let loading: Promise<Zod> | undefined

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
      throw new Error("zod could not be loaded from .opencode/node_modules; start OpenCode once with the network on", {
        cause: error,
      })
    },
  )
  return loading
}
