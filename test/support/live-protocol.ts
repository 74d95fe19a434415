import type { ZodType } from "zod"
import type { Zod } from "../../.opencode/baton/host/schema.ts"
import { isObject, type JSONValue, type LiveState, type StreamLine } from "../../.opencode/baton/live-state/protocol.ts"

/** Version 1 of the protocol: every field and nothing else; `extensions` is optional. */
export const streamLineSchema = (z: Zod) => {
  const time = z.string().regex(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
  const count = z.number().int().min(0)
  const text = z.string().nullable()
  const session = z.strictObject({ session_id: z.string() })
  const permission = z.strictObject({ id: z.string(), title: z.string(), type: z.string() })
  const question = z.strictObject({ id: z.string() })
  const details = z.union([session, permission]).nullable()
  const agent = z.strictObject({
    is_idle: z.boolean().nullable(),
    turn_count: count,
    step_count: count,
    last_step: z.strictObject({ event_type: z.string(), at: time, details }).nullable(),
    provider_id: text,
    model_id: text,
  })
  const prompt = z.strictObject({ has_text: z.boolean().nullable() })
  const asked = {
    id: z.string(),
    session_id: z.string(),
    root_session_id: z.string(),
    root_title: text,
    subagent: text,
    since: time,
  }
  const extensions = z.strictObject({
    task: z.strictObject({ id: z.string(), role: z.string() }).nullable(),
    title: text,
    turns: count,
    permission_subject: text,
    waiting: z.array(
      z.discriminatedUnion("kind", [
        z.strictObject({
          kind: z.literal("permission"),
          ...asked,
          title: z.string(),
          type: z.string(),
          subject: z.string(),
        }),
        z.strictObject({
          kind: z.literal("question"),
          ...asked,
          header: z.string(),
          text: z.string(),
          options: z.array(z.string()),
        }),
      ]),
    ),
    retry: z
      .strictObject({ message: z.string(), attempt: count, next_at: time.nullable(), since: time, subagent: text })
      .nullable(),
    place: z.strictObject({ directory: z.string(), server_url: text }).nullable(),
    compactions: count,
    handoffs: count,
    context_tokens: count.nullable(),
    status_since: time.nullable(),
    heartbeat_at: time,
  })
  const state = z.strictObject({
    c2c_session_id: z.string(),
    c2c_alias: text,
    root_opencode_session_id: text,
    opencode_pid: z.number().int(),
    plugin_started_at: time,
    state_last_updated_at: time,
    pendingQuestion: z
      .strictObject({ id: z.string(), text: z.string(), header: z.string(), options: z.array(z.string()) })
      .nullable(),
    agent,
    tui_focus: z.union([
      z.strictObject({ ty: z.literal("permission"), details: permission }),
      z.strictObject({ ty: z.literal("question"), details: question }),
      z.strictObject({ ty: z.enum(["prompt", "menu", "unknown"]), details: z.null() }),
    ]),
    prompt,
    extensions: extensions.optional(),
  })
  const parts = { agent: agent.partial(), prompt: prompt.partial(), extensions: extensions.partial() }
  return z.discriminatedUnion("event", [
    z.strictObject({ event: z.literal("state.snapshot"), ts: time, state: state as ZodType<LiveState> }),
    z.strictObject({ event: z.literal("state.patch"), ts: time, patch: state.extend(parts).partial() }),
  ])
}

type JSONObject = { readonly [key: string]: JSONValue }

/** The protocol's deep merge as a consumer makes it. A key such as `__proto__` is a key like any other. */
export const mergePatch = (state: JSONObject, patch: JSONObject): JSONObject => {
  const merged: Record<string, JSONValue> = Object.assign(Object.create(null), state)
  for (const [key, value] of Object.entries(patch)) {
    const before = merged[key]
    merged[key] = isObject(value) ? mergePatch(isObject(before) ? before : {}, value) : value
  }
  return merged
}

/** The state of a consumer of these lines: a snapshot replaces, a patch merges and needs a snapshot before it. */
export const reduceStream = (lines: readonly StreamLine[]): JSONObject | undefined => {
  let state: JSONObject | undefined
  for (const line of JSON.parse(JSON.stringify(lines))) {
    if (line.event === "state.snapshot") state = line.state
    else if (state === undefined) throw new Error("a patch came before any snapshot")
    else state = mergePatch(state, line.patch)
  }
  return state
}
