import { existsSync } from "node:fs"
import { join } from "node:path"
import type { Hooks, PluginInput, ToolDefinition } from "@opencode-ai/plugin"
import { bundleRoot, claimBundle } from "../host/bundle-claim.ts"
import { guardConfig, guardDispose, guardHook, guardObserver } from "../host/guard.ts"
import { createLog } from "../host/log.ts"
import { findProjectRoot } from "../host/project.ts"
import type { PassOverFeature } from "./feature.ts"

/** Of the project's root; apart, since each start looks for it and nothing else is loaded then. */
export const POLICY_FILE = ".opencode/pass-over.json"

const TRANSFORM_DEADLINE_MS = 1_000

/**
 * The hooks of passing work over, for one directory of one OpenCode process. A project asks for the feature by its policy
 * file; without one there are no hooks, no agents and no tools.
 */
export const createPassOverHooks = (input: PluginInput): Hooks => {
  const { client, directory, worktree } = input
  const projectRoot = findProjectRoot(directory, worktree)
  if (!existsSync(join(projectRoot, POLICY_FILE))) return {}
  const log = createLog(client, "pass-over")
  const claim = claimBundle({ feature: "pass-over", directory, projectRoot, bundleRoot })

  let feature: PassOverFeature | undefined
  let loading: Promise<PassOverFeature> | undefined
  const load = (): Promise<PassOverFeature> => {
    loading ??= import("./feature.ts").then(
      ({ createPassOverFeature }) => {
        feature = createPassOverFeature(input, { log, projectRoot, bundleRoot })
        return feature
      },
      (error: unknown) => {
        loading = undefined
        throw error
      },
    )
    return loading
  }

  let tools: Record<string, ToolDefinition> = {}

  return {
    config: guardConfig(log, "the tools that pass work over", async (config) => {
      if (!claim.isHeld()) return
      const { setUp } = await import("./tools.ts")
      tools = await setUp(config, { projectRoot, log, load })
    }),
    // OpenCode asks right before the first request, long after the config hook.
    get tool() {
      return tools
    },
    // No guard: to refuse a tool is to throw, and an error in judging a session of a pass refuses as well.
    "tool.execute.before": async (call, output) => {
      await feature?.beforeTool(call, output)
    },
    "experimental.chat.messages.transform": guardHook(
      log,
      { name: "experimental.chat.messages.transform", deadlineMs: TRANSFORM_DEADLINE_MS },
      async (_input, { messages }) => {
        const sessionID = messages[0]?.info.sessionID
        if (!claim.isHeld() || sessionID === undefined) return undefined
        return (await load()).offerTools(sessionID, messages)
      },
      (_input, { messages }) => ({ sessionID: messages[0]?.info.sessionID }),
    ),
    "experimental.chat.system.transform": guardHook(
      log,
      { name: "experimental.chat.system.transform", deadlineMs: TRANSFORM_DEADLINE_MS },
      async ({ sessionID }, output) =>
        sessionID === undefined ? undefined : feature?.placeSystemPrompt(sessionID, output),
      ({ sessionID }) => ({ sessionID }),
    ),
    "chat.params": guardHook(
      log,
      { name: "chat.params", deadlineMs: TRANSFORM_DEADLINE_MS },
      async ({ sessionID }) => {
        feature?.requestPrepared(sessionID)
        return undefined
      },
      ({ sessionID }) => ({ sessionID }),
    ),
    event: guardObserver(log, "event", ({ event }) => {
      if (!claim.isHeld()) return undefined
      return feature?.receive(event)
    }),
    dispose: guardDispose(log, { instance: client, claim }, async () => {
      await (await loading)?.stop()
    }),
  }
}
