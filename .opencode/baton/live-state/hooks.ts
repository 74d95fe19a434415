import type { Hooks, PluginInput } from "@opencode-ai/plugin"
import { bundleRoot, claimBundle } from "../host/bundle-claim.ts"
import { guardObserver } from "../host/guard.ts"
import { createLog } from "../host/log.ts"
import { findProjectRoot } from "../host/project-root.ts"
import type { RawEvent } from "./event-observation.ts"
import type { LiveStateFeature } from "./feature.ts"

/** The events that say something about the published state; all others, a token delta above all, end at this set. */
export const OBSERVED_EVENTS: ReadonlySet<string> = new Set([
  "session.created",
  "session.deleted",
  "session.idle",
  "session.status",
  "session.compacted",
  "command.executed",
  "message.updated",
  "permission.asked",
  // Other versions' name for the same.
  "permission.updated",
  "permission.replied",
  "question.asked",
  "question.replied",
  "question.rejected",
])

/** The live state's hooks for one directory of one OpenCode process. The writer is started by the first event that matters. */
export const createLiveStateHooks = (input: PluginInput): Hooks => {
  const { client, directory, worktree } = input
  const log = createLog(client, "live-state")
  const projectRoot = findProjectRoot(directory, worktree)
  const claim = claimBundle({ feature: "live-state", directory, projectRoot, bundleRoot })
  const startedAt = new Date()
  let feature: LiveStateFeature | undefined
  let loading: Promise<LiveStateFeature> | undefined
  const load = (): Promise<LiveStateFeature> => {
    loading ??= import("./feature.ts").then(({ createLiveStateFeature }) => {
      feature = createLiveStateFeature(input, { log, projectRoot, bundleRoot, startedAt })
      return feature
    })
    return loading
  }
  return {
    event: guardObserver(log, "event", ({ event }) => {
      const raw: RawEvent = event
      if (!OBSERVED_EVENTS.has(raw.type) || !claim.isHeld()) return undefined
      if (feature) return void feature.receive(raw)
      // In the order of the events: each waits for the same promise.
      return load().then((loaded) => loaded.receive(raw))
    }),
    dispose: async () => {
      await (await loading?.catch(() => undefined))?.stop()
      claim.release()
    },
  }
}
