import type { Hooks } from "@opencode-ai/plugin"
import type { Core } from "../core/core.ts"
import { agentName } from "../host/guard.ts"
import { describeError } from "../host/log.ts"
import { can } from "../host/port.ts"
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

/**
 * A session's first request follows these, and OpenCode waits less for it when the feature is loaded behind it. 1.18.33 also sends
 * one message to the plugins of a folder whose instance has just ended: a log line from here would start the instance again.
 */
const BEFORE_REQUEST = /^(?:session\.(?:created|updated|status)|message\.updated)$/
const MAX_EARLY_EVENTS = 1_000
const PARAMS_DEADLINE_MS = 1_000

const OFF: LiveStateFeature = { receive: () => {}, stop: async () => {} }

export const createLiveStateHooks = (core: Core): Hooks => {
  if (!can(core.input, "turn states")) return {}
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

  const begin = (): void => {
    loading ??= load()
  }

  return {
    // A session of c2c's is on its bus from its start on. This hook is called when all copies of the bundle are loaded.
    ...(process.env.C2C_MCP_SESSION_ID ? { config: served.config("c2c's messages", async () => begin()) } : {}),
    "chat.params": served.hook("chat.params", PARAMS_DEADLINE_MS, async ({ agent }: { agent: unknown }) => {
      // The title is asked for before the answer.
      if (agentName(agent) !== "title") begin()
      return undefined
    }),
    event: served.observer((event) => {
      const raw: RawEvent = event
      if (!OBSERVED_EVENTS.has(raw.type)) return undefined
      const at = new Date()
      if (feature) {
        feature.receive(raw, at)
        return undefined
      }
      early.push({ event: raw, at })
      if (!BEFORE_REQUEST.test(raw.type) || early.length >= MAX_EARLY_EVENTS) begin()
      return undefined
    }),
    dispose: served.dispose(async () => {
      await loading
      await feature?.stop()
    }),
  }
}
