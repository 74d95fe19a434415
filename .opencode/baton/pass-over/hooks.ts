import { existsSync, readdirSync } from "node:fs"
import { join } from "node:path"
import type { Hooks, ToolDefinition } from "@opencode-ai/plugin"
import type { Core } from "../core/core.ts"
import { lazy } from "../host/async.ts"
import { can } from "../host/port.ts"
import { stateRoot } from "../host/project.ts"
import type { PassOverFeature } from "./feature.ts"
import { policyPath } from "./policy/policy-path.ts"

const TRANSFORM_DEADLINE_MS = 1_000

const isEmpty = (folder: string): boolean => !existsSync(folder) || readdirSync(folder).length === 0

type Serving = { readonly load: () => Promise<PassOverFeature>; readonly isActive: () => boolean }

/** By OpenCode's folder. */
const serving = new Map<string, Serving>()

/**
 * Finds the feature for other plugins (api.ts).
 *
 * @returns undefined without a policy, and in a copy of the bundle that stays quiet: it would not see the tool calls of its passes, and so
 *   not hold them to their sandbox
 */
export const findServing = (directory: string): Serving["load"] | undefined => {
  const found = serving.get(directory)
  return found?.isActive() ? found.load : undefined
}

/** The hooks of pass-over. It is on where its policy file is; without one there are no hooks, agents or tools. */
export const createPassOverHooks = (core: Core): Hooks => {
  const { projectRoot } = core
  if (!can(core.input, "child sessions") || !existsSync(policyPath(projectRoot))) return {}
  const served = core.feature("pass-over")
  const { log, hook } = served

  let feature: PassOverFeature | undefined
  const load = lazy(async () => {
    const [{ createPassOverFeature }, services] = await Promise.all([import("./feature.ts"), core.services()])
    feature = createPassOverFeature(core, services, log)
    return feature
  })
  const { directory } = core.input
  const own: Serving = { load, isActive: served.isActive }
  serving.set(directory, own)

  let tools: Record<string, ToolDefinition> = {}
  let offerPassAlone: typeof import("./tools.ts").offerPassAlone | undefined

  return {
    config: served.config("the tools that pass work over", async (config) => {
      const registration = await import("./tools.ts")
      offerPassAlone = registration.offerPassAlone
      tools = await registration.setUp(config, { projectRoot, log, load })
    }),
    // OpenCode reads this right before the first request, long after the config hook.
    get tool() {
      return tools
    },
    // Unguarded: refusing a tool means throwing, and an error while judging must refuse it too.
    "tool.execute.before": async (call, output) => {
      await feature?.beforeTool(call, output)
    },
    "shell.env": async ({ sessionID }, output) => {
      if (sessionID !== undefined) feature?.setShellEnv(sessionID, output)
    },
    "experimental.chat.messages.transform": hook(
      "experimental.chat.messages.transform",
      TRANSFORM_DEADLINE_MS,
      async (_input, { messages }) => {
        const sessionID = messages[0]?.info.sessionID
        if (sessionID === undefined) return undefined
        // Most sessions pass nothing over: they need no feature, unless an earlier process left a pass.
        const passes = join(stateRoot(projectRoot), "pass-over")
        const isUnused = isEmpty(join(passes, "by-session", sessionID)) && isEmpty(join(passes, "unfinished"))
        if (!feature && isUnused) return () => offerPassAlone?.(messages)
        return (await load()).offerTools(sessionID, messages)
      },
    ),
    "experimental.chat.system.transform": hook(
      "experimental.chat.system.transform",
      TRANSFORM_DEADLINE_MS,
      async ({ sessionID }, output) =>
        sessionID === undefined ? undefined : feature?.rewriteSystemPrompt(sessionID, output),
    ),
    event: served.observer((event) => feature?.receive(event)),
    dispose: served.dispose(async () => {
      // OpenCode may have loaded the folder's plugins again.
      if (serving.get(directory) === own) serving.delete(directory)
      await (await load.current)?.stop()
    }),
  }
}
