import { existsSync } from "node:fs"
import { join } from "node:path"
import type { Hooks, ToolDefinition } from "@opencode-ai/plugin"
import type { Core } from "../core/core.ts"
import { lazy } from "../host/async.ts"
import type { PassOverFeature } from "./feature.ts"

/** Relative to the project's root. Defined here, so that a start without the file loads nothing else. */
export const POLICY_FILE = ".opencode/pass-over.json"

const TRANSFORM_DEADLINE_MS = 1_000

/** The hooks of pass-over. A project enables it by its policy file; without one there are no hooks, agents or tools. */
export const createPassOverHooks = (core: Core): Hooks => {
  const { projectRoot } = core
  if (!existsSync(join(projectRoot, POLICY_FILE))) return {}
  const served = core.feature("pass-over")
  const { log, hook } = served

  let feature: PassOverFeature | undefined
  const load = lazy(async () => {
    const [{ createPassOverFeature }, services] = await Promise.all([import("./feature.ts"), core.services()])
    feature = createPassOverFeature(core, services, log)
    return feature
  })

  let tools: Record<string, ToolDefinition> = {}

  return {
    config: served.config("the tools that pass work over", async (config) => {
      const { setUp } = await import("./tools.ts")
      tools = await setUp(config, { projectRoot, log, load })
    }),
    // OpenCode reads this right before the first request, long after the config hook.
    get tool() {
      return tools
    },
    // Unguarded: refusing a tool means throwing, and an error while judging must refuse it too.
    "tool.execute.before": async (call, output) => {
      await feature?.beforeTool(call, output)
    },
    "experimental.chat.messages.transform": hook(
      "experimental.chat.messages.transform",
      TRANSFORM_DEADLINE_MS,
      async (_input, { messages }) => {
        const sessionID = messages[0]?.info.sessionID
        return sessionID === undefined ? undefined : (await load()).offerTools(sessionID, messages)
      },
    ),
    "experimental.chat.system.transform": hook(
      "experimental.chat.system.transform",
      TRANSFORM_DEADLINE_MS,
      async ({ sessionID }, output) =>
        sessionID === undefined ? undefined : feature?.placeSystemPrompt(sessionID, output),
    ),
    "chat.params": hook("chat.params", TRANSFORM_DEADLINE_MS, async ({ sessionID }) => {
      feature?.requestPrepared(sessionID)
      return undefined
    }),
    event: served.observer((event) => feature?.receive(event)),
    dispose: served.dispose(async () => (await load.current)?.stop()),
  }
}
