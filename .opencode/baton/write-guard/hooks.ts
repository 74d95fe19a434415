import type { Hooks } from "@opencode-ai/plugin"
import type { Core } from "../core/core.ts"
import { lazy } from "../host/async.ts"

const GATE_DEADLINE_MS = 1_000
/** The tools that write files they name. OpenCode 1.2.15 asks no plugin about the tools in a batch. */
const WRITES = /^(?:edit|write|multiedit|patch|apply_patch|batch|pass_over_apply)$/

/**
 * Keeps OpenCode's editing tools from Baton's own files: by permission rules behind the user's own, and, since "always" in
 * OpenCode's dialog and another spelling of a path get around rules, by a look at each path before the tool runs.
 */
export const createWriteGuardHooks = (core: Core): Hooks => {
  const feature = core.feature("write-guard")
  const load = lazy(async () => (await import("./guard.ts")).createWriteGuard(core))
  return {
    event: feature.observer((event) =>
      event.type.startsWith("permission.") ? load().then((guard) => guard.watch(event)) : undefined,
    ),
    config: feature.config("the rules for Baton's own files", async (config) => (await load()).protect(config)),
    "tool.execute.before": feature.gate(
      "tool.execute.before",
      GATE_DEADLINE_MS,
      async ({ tool, sessionID }: { tool: string; sessionID: string }, { args }: { args: unknown }) => {
        if (!WRITES.test(tool)) return undefined
        const refusal = (await load()).refusal(tool, args)
        if (refusal !== undefined) feature.log.info("a write to a file of Baton's is refused", { sessionID, tool })
        return refusal
      },
    ),
    dispose: feature.dispose(),
  }
}
