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
  /** Start of the present status: busy, idle, or waiting for this answer. */
  readonly status_since: string | null
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

type JSONObject = { readonly [key: string]: JSONValue }

export const isObject = (value: unknown): value is JSONObject =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const NO_KEYS: ReadonlySet<string> = new Set()

type Difference =
  | { readonly kind: "none" }
  | { readonly kind: "patch"; readonly patch: JSONObject }
  /** A merge cannot remove a key: the whole state has to be sent. */
  | { readonly kind: "replaced" }

/**
 * Computes the smallest patch that turns the first state into the second by the protocol's deep merge: objects merge, scalars and
 * arrays replace, null clears, missing keys stay.
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
