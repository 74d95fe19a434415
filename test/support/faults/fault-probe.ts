import { appendFileSync } from "node:fs"
import { join } from "node:path"
import type { Plugin } from "@opencode-ai/plugin"

/**
 * A plugin file that replaces the bundle's `plugins/compaction-handoff.ts` in tests: it has the same hooks and writes the time of
 * each hook call to `hook-times` in HOME.
 */
export const TimedCompactionHandoff: Plugin = async (input) => {
  const path = new URL("../baton/compaction/hooks.ts", import.meta.url).href
  const { createCompactionHooks }: typeof import("../../../.opencode/baton/compaction/hooks.ts") = await import(path)
  const core = new URL("../baton/core/core.ts", import.meta.url).href
  const { openCore }: typeof import("../../../.opencode/baton/core/core.ts") = await import(core)
  const hooks: Record<string, unknown> = { ...createCompactionHooks(openCore(input)) }
  for (const [hook, real] of Object.entries(hooks)) {
    if (typeof real !== "function") continue
    hooks[hook] = async (...args: unknown[]) => {
      const startedAt = performance.now()
      try {
        return await real(...args)
      } finally {
        const line = JSON.stringify({ hook, ms: performance.now() - startedAt })
        appendFileSync(join(process.env.HOME ?? "", "hook-times"), `${line}\n`)
      }
    }
  }
  return hooks
}
