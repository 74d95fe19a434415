import type { Extensions, LiveState, PendingQuestion, PermissionDetails } from "./protocol.ts"

/** The facts about one root session that are read from OpenCode's events. */
export type Observation =
  | { readonly kind: "created" }
  | { readonly kind: "busy" }
  | { readonly kind: "idle" }
  | { readonly kind: "permission-asked"; readonly eventType: string; readonly details: PermissionDetails }
  | { readonly kind: "permission-replied"; readonly id: string }
  | { readonly kind: "question-asked"; readonly question: PendingQuestion }
  | { readonly kind: "question-ended"; readonly id: string }
  | { readonly kind: "model-used"; readonly providerID: string; readonly modelID: string }
  | { readonly kind: "message-finished"; readonly messageID: string; readonly contextTokens: number }
  | { readonly kind: "compacted" }
  | { readonly kind: "handoff" }
  | { readonly kind: "task-bound"; readonly task: Extensions["task"] }
  | { readonly kind: "ended" }

/** One root session's part of the published state, and the values needed to update it. */
export type AgentState = {
  readonly agent: LiveState["agent"]
  readonly focus: LiveState["tui_focus"]
  readonly hasText: boolean | null
  /** In the order they were asked; the first is the pending one. */
  readonly questions: readonly PendingQuestion[]
  readonly permissions: readonly PermissionDetails[]
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
    ? { ty: "permission", details: permission }
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

const closed = (observation: never): never => {
  throw new Error(`unknown observation: ${JSON.stringify(observation)}`)
}

/** Names the status: each request that waits is one of its own. */
const statusOf = ({ permissions, questions, agent }: AgentState): string =>
  (permissions[0] ?? questions[0])?.id ?? String(agent.is_idle)

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
      return withIdle(state, false)
    case "idle": {
      // OpenCode may report idle twice; it is a new turn only after work in between.
      if (state.agent.is_idle === true) return state
      // After the turn nothing waits for the user: an unanswered request timed out or was cancelled.
      const ended = withFocus({ ...withIdle(state, true), questions: [], permissions: [] })
      const idle = withStep(ended, "session.idle", at, details)
      return { ...idle, hasText: false, agent: { ...idle.agent, turn_count: idle.agent.turn_count + 1 } }
    }
    case "permission-asked": {
      const others = state.permissions.filter(({ id }) => id !== seen.details.id)
      const asked = withFocus({ ...state, permissions: [...others, seen.details].slice(-MAX_WAITING) })
      return withStep(asked, seen.eventType, at, seen.details)
    }
    case "permission-replied": {
      if (!state.permissions.some(({ id }) => id === seen.id)) return state
      return withFocus({ ...state, permissions: state.permissions.filter(({ id }) => id !== seen.id) })
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
        ...withIdle(state, false),
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
    case "task-bound":
      return { ...state, task: seen.task }
    case "ended":
      return withFocus({ ...withIdle(state, true), questions: [], permissions: [] })
    default:
      return closed(seen)
  }
}
