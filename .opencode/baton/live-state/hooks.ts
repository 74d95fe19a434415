import type { Hooks } from "@opencode-ai/plugin"
import type { Core } from "../core/core.ts"
import { describeError } from "../host/log.ts"
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

/** The live state's hooks. */
export const createLiveStateHooks = (core: Core): Hooks => {
  const served = core.feature("live-state")
  const { log } = served
  const startedAt = new Date()
  let early: { event: RawEvent; at: Date }[] = []
  let timer: NodeJS.Timeout | undefined
  let feature: LiveStateFeature | undefined
  let loading: Promise<void> | undefined
  let delayMs = START_DELAY_MS

  const begin = async (): Promise<void> => {
    try {
      const { createLiveStateFeature } = await import("./feature.ts")
      feature = createLiveStateFeature(core, { log, startedAt })
      for (const { event, at } of early) feature.receive(event, at)
      early = []
    } catch (error) {
      log.error("live state could not be loaded", { error: describeError(error) })
      delayMs = RETRY_MS
      timer = undefined
    }
  }

  return {
    event: served.observer((event) => {
      const raw: RawEvent = event
      if (!OBSERVED_EVENTS.has(raw.type)) return undefined
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
    dispose: served.dispose(async () => {
      clearTimeout(timer)
      await loading
      await feature?.stop()
    }),
  }
}
