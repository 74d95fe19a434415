import type { Hooks, PluginInput } from "@opencode-ai/plugin"
import { bundleRoot, claimBundle } from "../host/bundle-claim.ts"
import { guardDispose, guardObserver } from "../host/guard.ts"
import { createLog, describeError } from "../host/log.ts"
import { findProjectRoot } from "../host/project.ts"
import type { RawEvent } from "./events.ts"
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

/**
 * OpenCode's start is left alone: what happens in a session's first seconds is kept and published then. A process that
 * ends sooner was nobody's to watch.
 */
const START_DELAY_MS = 3_000
/** After a failure to load the feature. */
const RETRY_MS = 60_000
/** Far more than that brings, for a feature that cannot be loaded. */
const MAX_EARLY_EVENTS = 1_000

/** How what serves a directory ends: 1.3.2 starts its plugins anew without a word to the ones before, in the same module. */
const endings = new Map<string, () => Promise<void>>()

/** The live state's hooks for one directory of one OpenCode process. */
export const createLiveStateHooks = (input: PluginInput): Hooks => {
  const { client, directory, worktree } = input
  const log = createLog(client, "live-state")
  const projectRoot = findProjectRoot(directory, worktree)
  const claim = claimBundle({ feature: "live-state", directory, projectRoot, bundleRoot })
  const startedAt = new Date()
  let early: { event: RawEvent; at: Date }[] = []
  let timer: NodeJS.Timeout | undefined
  let feature: LiveStateFeature | undefined
  let loading: Promise<void> | undefined
  let delayMs = START_DELAY_MS

  const begin = async (): Promise<void> => {
    try {
      const { createLiveStateFeature } = await import("./feature.ts")
      feature = createLiveStateFeature(input, { log, projectRoot, bundleRoot, startedAt })
      for (const { event, at } of early) feature.receive(event, at)
      early = []
    } catch (error) {
      log.error("live state could not be loaded", { error: describeError(error) })
      delayMs = RETRY_MS
      timer = undefined
    }
  }

  /** OpenCode starts a folder's plugins anew without its process ending: this writer must not stay beside the next one. */
  const dispose = guardDispose(log, { instance: client, claim }, async () => {
    if (endings.get(directory) === dispose) endings.delete(directory)
    clearTimeout(timer)
    await loading
    await feature?.stop()
  })
  void endings.get(directory)?.()
  endings.set(directory, dispose)

  return {
    event: guardObserver(log, "event", ({ event }) => {
      const raw: RawEvent = event
      // Where it calls no dispose (1.2.15, 1.14.41) this is the last that is heard of OpenCode.
      if (raw.type === "server.instance.disposed") return dispose()
      if (!OBSERVED_EVENTS.has(raw.type) || !claim.isHeld()) return undefined
      const at = new Date()
      if (feature) {
        feature.receive(raw, at)
        return undefined
      }
      if (early.length < MAX_EARLY_EVENTS) early.push({ event: raw, at })
      // 1.18.33 loads the plugins of a folder whose instance has just ended once more and tells them of one message; a log line
      // from there would start the instance again. Where a session works, its status follows at once.
      if (raw.type === "message.updated") return undefined
      timer ??= setTimeout(() => {
        loading = begin()
      }, delayMs)
      timer.unref()
      return undefined
    }),
    dispose,
  }
}
