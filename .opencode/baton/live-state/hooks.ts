import type { Hooks } from "@opencode-ai/plugin"
import type { Core } from "../core/core.ts"
import { describeError } from "../host/log.ts"
import type { RawEvent } from "../host/schema.ts"
import type { LiveStateFeature } from "./feature.ts"

/** The events that may change the published state. All others, token deltas above all, are dropped by this set. */
export const OBSERVED_EVENTS: ReadonlySet<string> = new Set([
  "session.created",
  "session.updated",
  "session.deleted",
  "session.idle",
  "session.status",
  "session.compacted",
  "command.executed",
  "message.updated",
  "permission.asked",
  // The same event in other versions.
  "permission.updated",
  "permission.replied",
  "question.asked",
  "question.replied",
  "question.rejected",
])

const OFF: LiveStateFeature = { receive: () => {}, stop: async () => {} }

export const createLiveStateHooks = (core: Core): Hooks => {
  const served = core.feature("live-state")
  const { log } = served
  const startedAt = new Date()
  let early: { event: RawEvent; at: Date }[] = []
  let feature: LiveStateFeature | undefined
  let loading: Promise<void> | undefined

  const load = async (): Promise<void> => {
    try {
      const { createLiveStateFeature } = await import("./feature.ts")
      feature = createLiveStateFeature(core, { log, startedAt })
    } catch (error) {
      log.error("live state could not be loaded", { error: describeError(error) })
      feature = OFF
    }
    for (const { event, at } of early) feature.receive(event, at)
    early = []
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
      early.push({ event: raw, at })
      // 1.18.33 loads the plugins again for a folder whose instance has just ended and sends them one message. A log line from
      // here would start the instance again. In a session at work a status event follows at once.
      if (raw.type !== "message.updated" && raw.type !== "session.updated") loading ??= load()
      return undefined
    }),
    dispose: served.dispose(async () => {
      await loading
      await feature?.stop()
    }),
  }
}
