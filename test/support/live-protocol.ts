import type { ZodType } from "zod"
import type { Zod } from "../../.opencode/baton/host/schema.ts"
import { isObject, type JSONValue, type LiveState, type StreamLine } from "../../.opencode/baton/live-state/protocol.ts"

const stateShape = (z: Zod) => {
  const time = z.string().regex(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
  const session = z.strictObject({ session_id: z.string() })
  const permission = z.strictObject({ id: z.string(), title: z.string(), type: z.string() })
  const question = z.strictObject({ id: z.string() })
  return {
    time,
    fields: {
      c2c_session_id: z.string(),
      c2c_alias: z.string().nullable(),
      root_opencode_session_id: z.string().nullable(),
      opencode_pid: z.number().int(),
      plugin_started_at: time,
      state_last_updated_at: time,
      pendingQuestion: z
        .strictObject({ id: z.string(), text: z.string(), header: z.string(), options: z.array(z.string()) })
        .nullable(),
    },
    agent: {
      is_idle: z.boolean().nullable(),
      turn_count: z.number().int().min(0),
      step_count: z.number().int().min(0),
      last_step: z
        .strictObject({ event_type: z.string(), at: time, details: z.union([session, permission]).nullable() })
        .nullable(),
      provider_id: z.string().nullable(),
      model_id: z.string().nullable(),
    },
    focus: z.union([
      z.strictObject({ ty: z.literal("permission"), details: permission }),
      z.strictObject({ ty: z.literal("question"), details: question }),
      z.strictObject({ ty: z.enum(["prompt", "menu", "unknown"]), details: z.null() }),
    ]),
    prompt: z.strictObject({ has_text: z.boolean().nullable() }),
    extensions: {
      task: z.strictObject({ id: z.string(), role: z.string() }).nullable(),
      compactions: z.number().int().min(0),
      handoffs: z.number().int().min(0),
      context_tokens: z.number().int().min(0).nullable(),
      status_since: time.nullable(),
      heartbeat_at: time,
    },
  }
}

/** Version 1 of the protocol: every field and nothing else; `extensions` is optional. */
const liveStateSchema = (z: Zod): ZodType<LiveState> => {
  const { fields, agent, focus, prompt, extensions } = stateShape(z)
  return z.strictObject({
    ...fields,
    agent: z.strictObject(agent),
    tui_focus: focus,
    prompt,
    extensions: z.strictObject(extensions).optional(),
  })
}

export const streamLineSchema = (z: Zod) => {
  const { time, fields, agent, focus, prompt, extensions } = stateShape(z)
  const patch = z
    .strictObject({
      ...fields,
      agent: z.strictObject(agent).partial(),
      tui_focus: focus,
      prompt: prompt.partial(),
      extensions: z.strictObject(extensions).partial(),
    })
    .partial()
  return z.discriminatedUnion("event", [
    z.strictObject({ event: z.literal("state.snapshot"), ts: time, state: liveStateSchema(z) as ZodType<LiveState> }),
    z.strictObject({ event: z.literal("state.patch"), ts: time, patch }),
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
