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

/** A permission or question that waits for a person, of any session of the process. Later than version 1. */
export type Waiting = {
  readonly id: string
  readonly session_id: string
  /** The session that a person sees: its own, or the one above all subagents. */
  readonly root_session_id: string
  readonly root_title: string | null
  /** Title or id of the subagent's session that asks; null for a root session. */
  readonly subagent: string | null
  readonly since: string
} & (
  | { readonly kind: "permission"; readonly title: string; readonly type: string; readonly subject: string }
  | { readonly kind: "question"; readonly header: string; readonly text: string; readonly options: readonly string[] }
)

/** A provider that failed and is asked again. */
export type Retry = {
  readonly message: string
  /** Attempts so far that failed. */
  readonly attempt: number
  readonly next_at: string | null
  readonly since: string
  /** As in `Waiting`. */
  readonly subagent: string | null
}

/** The folder that the process works in, and its address, if it listens there. */
export type Place = { readonly directory: string; readonly server_url: string | null }

/** Fields beyond version 1; absent when the settings say strict. */
export type Extensions = {
  readonly task: { readonly id: string; readonly role: string } | null
  /** The session's, as OpenCode shows it; null until it has one of its own. */
  readonly title: string | null
  /** Turns in which the model answered: `turn_count` without the compactions that a user asked for. */
  readonly turns: number
  /** Command, path or address of the permission that is asked. */
  readonly permission_subject: string | null
  /** In the order in which they were asked, those of the published session and its subagents first. */
  readonly waiting: readonly Waiting[]
  /** Of the published session or a subagent of its. */
  readonly retry: Retry | null
  readonly place: Place | null
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

/** The facts about one root session that are read from OpenCode's events. */
export type Observation =
  | { readonly kind: "created" }
  | { readonly kind: "busy" }
  | {
      readonly kind: "retrying"
      readonly message: string
      readonly attempt: number
      /** ISO 8601. */
      readonly nextAt: string | null
    }
  | { readonly kind: "idle" }
  | ({ readonly kind: "permission-asked"; readonly eventType: string } & AskedPermission)
  | { readonly kind: "permission-replied"; readonly id: string }
  | { readonly kind: "question-asked"; readonly question: PendingQuestion }
  | { readonly kind: "question-ended"; readonly id: string }
  | { readonly kind: "titled"; readonly title: string }
  | {
      readonly kind: "model-used"
      readonly providerID: string
      readonly modelID: string
      /** It writes the summary of a compaction, no answer. */
      readonly isSummary: boolean
    }
  | { readonly kind: "message-finished"; readonly messageID: string; readonly contextTokens: number }
  | { readonly kind: "compacted" }
  | { readonly kind: "handoff" }
  | { readonly kind: "task-bound"; readonly task: Extensions["task"] }
  | { readonly kind: "ended" }

/** `subject`: the command, path or address that it is about; empty if the event has none. */
type AskedPermission = { readonly details: PermissionDetails; readonly subject: string }

/** One root session's part of the published state, and the values needed to update it. */
export type AgentState = {
  readonly agent: LiveState["agent"]
  readonly focus: LiveState["tui_focus"]
  readonly hasText: boolean | null
  /** In the order they were asked; the first is the pending one. */
  readonly questions: readonly PendingQuestion[]
  readonly permissions: readonly AskedPermission[]
  readonly title: string | null
  /** Turns in which the model answered; `turn_count` has manual compactions, too. */
  readonly turns: number
  readonly isAnswering: boolean
  readonly task: Extensions["task"]
  readonly compactions: number
  readonly handoffs: number
  readonly contextTokens: number | null
  /** Start of its present status, ISO 8601; null before any observation. */
  readonly statusSince: string | null
  /** The newest message whose tokens were counted. Ids ascend. */
  readonly countedMessageID: string
  /** The newest message of the user. */
  readonly spokenMessageID: string
}

/** More than a user leaves waiting. */
const MAX_WAITING = 100

export const NEW_AGENT: AgentState = {
  agent: { is_idle: null, turn_count: 0, step_count: 0, last_step: null, provider_id: null, model_id: null },
  focus: { ty: "unknown", details: null },
  hasText: null,
  questions: [],
  permissions: [],
  title: null,
  turns: 0,
  isAnswering: false,
  task: null,
  compactions: 0,
  handoffs: 0,
  contextTokens: null,
  statusSince: null,
  countedMessageID: "",
  spokenMessageID: "",
}

/** Sets what the user has to look at: a permission first, since it blocks the tool; then a question; else the prompt. */
const withFocus = (state: AgentState): AgentState => {
  const [permission] = state.permissions
  const [question] = state.questions
  const focus: AgentState["focus"] = permission
    ? { ty: "permission", details: permission.details }
    : question
      ? { ty: "question", details: { id: question.id } }
      : { ty: "prompt", details: null }
  return { ...state, focus }
}

const withStep = (
  state: AgentState,
  eventType: string,
  at: string,
  details: NonNullable<LiveState["agent"]["last_step"]>["details"],
): AgentState => ({
  ...state,
  agent: { ...state.agent, step_count: state.agent.step_count + 1, last_step: { event_type: eventType, at, details } },
})

const withIdle = (state: AgentState, isIdle: boolean): AgentState =>
  state.agent.is_idle === isIdle ? state : { ...state, agent: { ...state.agent, is_idle: isIdle } }

/** Names the status: each request that waits is one of its own. */
const statusOf = ({ permissions, questions, agent }: AgentState): string =>
  (permissions[0]?.details ?? questions[0])?.id ?? String(agent.is_idle)

/**
 * Applies the rules of the protocol (docs/live-state.md) for one root session. Counters: `turn_count` grows only at idle, once
 * per turn; `step_count` at created, idle and the two permission events.
 *
 * @param at time of the observation, ISO 8601 with milliseconds
 */
export const reduce = (state: AgentState, sessionID: string, at: string, seen: Observation): AgentState => {
  const next = apply(state, sessionID, at, seen)
  return state.statusSince !== null && statusOf(next) === statusOf(state) ? next : { ...next, statusSince: at }
}

const apply = (state: AgentState, sessionID: string, at: string, seen: Observation): AgentState => {
  const details = { session_id: sessionID }
  switch (seen.kind) {
    case "created":
      return withStep(withFocus(state), "session.created", at, details)
    case "busy":
    case "retrying":
      return withIdle(state, false)
    case "idle": {
      // OpenCode may report idle twice; it is a new turn only after work in between.
      if (state.agent.is_idle === true) return state
      // After the turn nothing waits for the user: an unanswered request timed out or was cancelled.
      const ended = withFocus({ ...withIdle(state, true), questions: [], permissions: [] })
      const idle = withStep(ended, "session.idle", at, details)
      return {
        ...idle,
        hasText: false,
        turns: state.turns + (state.isAnswering ? 1 : 0),
        isAnswering: false,
        agent: { ...idle.agent, turn_count: idle.agent.turn_count + 1 },
      }
    }
    case "permission-asked": {
      const { details: asked, subject } = seen
      const others = state.permissions.filter((each) => each.details.id !== asked.id)
      const permissions = [...others, { details: asked, subject }].slice(-MAX_WAITING)
      return withStep(withFocus({ ...state, permissions }), seen.eventType, at, asked)
    }
    case "permission-replied": {
      const left = state.permissions.filter((each) => each.details.id !== seen.id)
      return left.length === state.permissions.length ? state : withFocus({ ...state, permissions: left })
    }
    case "question-asked": {
      if (state.questions.some(({ id }) => id === seen.question.id)) return state
      return withFocus({ ...state, questions: [...state.questions, seen.question].slice(0, MAX_WAITING) })
    }
    case "question-ended": {
      if (!state.questions.some(({ id }) => id === seen.id)) return state
      return withFocus({ ...state, questions: state.questions.filter(({ id }) => id !== seen.id) })
    }
    case "model-used":
      return {
        ...state,
        isAnswering: state.isAnswering || !seen.isSummary,
        agent: { ...state.agent, is_idle: false, provider_id: seen.providerID, model_id: seen.modelID },
      }
    case "message-finished":
      // Each change of a message is reported; its tokens count once.
      if (seen.messageID <= state.countedMessageID) return state
      return { ...state, contextTokens: seen.contextTokens, countedMessageID: seen.messageID }
    case "compacted":
      return { ...state, compactions: state.compactions + 1 }
    case "handoff":
      return { ...state, handoffs: state.handoffs + 1 }
    case "titled":
      return { ...state, title: seen.title }
    case "task-bound":
      return { ...state, task: seen.task }
    case "ended":
      return withFocus({ ...withIdle(state, true), questions: [], permissions: [] })
  }
}
