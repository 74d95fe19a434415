import type { ZodType } from "zod"
import type { Zod } from "../host/schema.ts"

/** Details of an event, compact: never a prompt, never a raw payload. */
type SessionDetails = { readonly session_id: string }
export type PermissionDetails = { readonly id: string; readonly title: string; readonly type: string }
type QuestionDetails = { readonly id: string }

type LastStep = {
  readonly event_type: string
  readonly at: string
  readonly details: SessionDetails | PermissionDetails | null
}

type Focus =
  | { readonly ty: "permission"; readonly details: PermissionDetails }
  | { readonly ty: "question"; readonly details: QuestionDetails }
  | { readonly ty: "prompt" | "menu" | "unknown"; readonly details: null }

export type PendingQuestion = {
  readonly id: string
  readonly text: string
  readonly header: string
  readonly options: readonly string[]
}

/** Fields beyond version 1; absent when the settings say strict. */
export type Extensions = {
  readonly task: { readonly id: string; readonly role: string } | null
  readonly compactions: number
  readonly handoffs: number
  /** Tokens of the newest finished message's request and answer, each message counted once. */
  readonly context_tokens: number | null
  readonly heartbeat_at: string
}

/** The state of one agent: the root session of one OpenCode process in one directory. Times are ISO 8601, UTC, with ms. */
export type LiveState = {
  readonly c2c_session_id: string
  readonly c2c_alias: string | null
  readonly root_opencode_session_id: string | null
  readonly opencode_pid: number
  readonly plugin_started_at: string
  readonly state_last_updated_at: string
  readonly agent: {
    readonly is_idle: boolean | null
    readonly turn_count: number
    readonly step_count: number
    readonly last_step: LastStep | null
    readonly provider_id: string | null
    readonly model_id: string | null
  }
  readonly tui_focus: Focus
  readonly prompt: { readonly has_text: boolean | null }
  readonly pendingQuestion: PendingQuestion | null
  readonly extensions?: Extensions | undefined
}

/** A part of the state: missing keys are unchanged, null clears, an array replaces. */
type StatePatch = { readonly [key: string]: JSONValue }
export type JSONValue = string | number | boolean | null | readonly JSONValue[] | { readonly [key: string]: JSONValue }

export type StreamLine =
  | { readonly event: "state.snapshot"; readonly ts: string; readonly state: LiveState }
  | { readonly event: "state.patch"; readonly ts: string; readonly patch: StatePatch }

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

/** A patch may come from any program; a deeper one is refused. */
const MAX_DEPTH = 64

export const isObject = (value: unknown): value is JSONObject =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/**
 * The protocol's deep merge: objects merge, scalars and arrays replace, null clears, missing keys stay. Neither argument is
 * changed.
 *
 * @throws RangeError when the patch is nested more than 64 deep
 */
export const mergePatch = (state: JSONObject, patch: JSONObject, depth = 0): JSONObject => {
  if (depth > MAX_DEPTH) throw new RangeError(`the patch is nested more than ${MAX_DEPTH} deep`)
  // Without a prototype, `__proto__` is an ordinary key.
  const merged: Record<string, JSONValue> = Object.assign(Object.create(null), state)
  for (const [key, value] of Object.entries(patch)) {
    const before = merged[key]
    merged[key] = isObject(value) ? mergePatch(isObject(before) ? before : {}, value, depth + 1) : value
  }
  return merged
}

const NO_KEYS: ReadonlySet<string> = new Set()

type Difference =
  | { readonly kind: "none" }
  | { readonly kind: "patch"; readonly patch: JSONObject }
  /** A merge cannot remove a key: the whole state has to be sent. */
  | { readonly kind: "replaced" }

/**
 * Computes the smallest patch that `mergePatch` needs to turn the first state into the second.
 *
 * @param whole keys whose value is sent as a whole when anything in it changes: its fields mean nothing on their own
 */
export const diffStates = (before: JSONObject, after: JSONObject, whole: ReadonlySet<string> = NO_KEYS): Difference => {
  if (Object.keys(before).some((key) => !Object.hasOwn(after, key))) return { kind: "replaced" }
  const patch: Record<string, JSONValue> = Object.create(null)
  for (const [key, value] of Object.entries(after)) {
    const old = Object.hasOwn(before, key) ? before[key] : undefined
    if (isObject(value) && isObject(old)) {
      const inner = diffStates(old, value, whole)
      if (inner.kind === "replaced") return inner
      if (inner.kind === "patch") patch[key] = whole.has(key) ? value : inner.patch
    } else if (old === undefined || JSON.stringify(old) !== JSON.stringify(value)) patch[key] = value
  }
  return Object.keys(patch).length > 0 ? { kind: "patch", patch } : { kind: "none" }
}
