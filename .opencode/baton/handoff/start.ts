import type { ChildSessions } from "../host/child-sessions.ts"
import { collectUserText } from "../host/messages.ts"
import type { PermissionRule } from "../host/permissions.ts"
import { findBeyond } from "../host/rule-sets.ts"
import {
  type AgentAndModel,
  isSameModel,
  type ModelInfo,
  messagePages,
  type Result,
  type Sessions,
} from "../host/sessions.ts"
import type { Interface } from "../host/tui.ts"
import { nearestNames } from "../task/parse.ts"
import type { HandoffRecord } from "./records.ts"

/** Sessions that may start one another without a message of the user in between. */
export const MAX_STARTED_IN_A_ROW = 5

/** Longer than any chain that counts, subagents included. */
const MAX_STEPS = 64
const PAGE_MESSAGES = 100

type ChainDeps = {
  sessions: Pick<Sessions, "messages" | "parent">
  /** Asked before each page of messages; when it is true, the rest counts as without a user's message. */
  shouldStop: () => boolean
}

/** In a session that was started with this draft. If it cannot be read, the user has not. */
const hasUserWritten = async (
  { sessions, shouldStop }: ChainDeps,
  sessionID: string,
  draft: string,
): Promise<boolean> => {
  for await (const answer of messagePages(sessions, sessionID, { size: PAGE_MESSAGES, shouldStop })) {
    if (answer.kind === "failed") return false
    const texts = answer.value.messages
      .filter(({ info }) => info.role === "user")
      .map(({ parts }) => collectUserText(parts))
    if (texts.some((text) => text.trim() !== "" && text.trim() !== draft.trim())) return true
  }
  return false
}

/** Counts the handoffs that were started one out of the other, up to this session, since the user's last message. */
export const countStarted = async (
  deps: ChainDeps,
  sessionID: string,
  records: readonly HandoffRecord[],
): Promise<number> => {
  let started = 0
  let current = sessionID
  for (let step = 0; step < MAX_STEPS; step++) {
    const parent = await deps.sessions.parent(current)
    // The messages of a subagent's session are an agent's.
    if (parent.kind === "ok" && parent.value !== undefined) {
      current = parent.value
      continue
    }
    const record = records.find((each) => each.started === current)
    if (!record || (await hasUserWritten(deps, current, record.draft))) return started
    started++
    current = record.from
  }
  return started
}

/** The one who wants the new session to begin at once: the model, or the user by `/handoff --start`. */
type StartRequester = "user" | "model"

type StartDeps = {
  sessions: Pick<Sessions, "messages" | "parent">
  childSessions: Pick<ChildSessions, "agents">
  records: () => Promise<readonly HandoffRecord[]>
  userInterface: Interface
  startDeadline: () => () => boolean
}

export type Starting = {
  readonly sessionID: string
  readonly parentID: string | undefined
  /** The session's own rules, which the new one has, too. */
  readonly permission: readonly PermissionRule[]
  readonly agent: string | undefined
  /** The agent that the new session is to have. */
  readonly targetAgent: string | undefined
}

/** OpenCode's tools that ask the user themselves. */
const ASKING: ReadonlySet<string> = new Set(["question", "plan_enter", "plan_exit"])

/** @returns the reason why a model must not start this agent: it may do what the model's own agent may not */
const whyNotAgent = async (
  { childSessions }: Pick<StartDeps, "childSessions">,
  { agent, targetAgent, permission }: Starting,
): Promise<string | undefined> => {
  if (targetAgent === undefined || targetAgent === agent) return undefined
  const how = "the user begins it with /handoff --start"
  const answer = await childSessions.agents()
  const rulesOf = (name: string | undefined): PermissionRule[] | undefined => {
    const found = answer.kind === "ok" ? answer.value.find((each) => each.name === name) : undefined
    return found && [...found.permission, ...permission].filter((rule) => !ASKING.has(rule.permission))
  }
  const [own, target] = [rulesOf(agent), rulesOf(targetAgent)]
  if (!own || !target) return `whether ${targetAgent} may do more than ${agent ?? "this agent"} is not known: ${how}`
  const beyond = findBeyond(target, own)
  return beyond && `${targetAgent} may do more than ${agent} (${beyond.permission} ${beyond.pattern}): ${how}`
}

/** @returns the reason why the new session must not begin at once, so that nothing runs in it; undefined for none */
export const whyNotStarted = async (
  { sessions, childSessions, records, userInterface, startDeadline }: StartDeps,
  starting: Starting,
  requester: StartRequester,
): Promise<string | undefined> => {
  const { sessionID, parentID } = starting
  if (userInterface === "run")
    return "`opencode run` ends with this session's turn, and a second session would end with it"
  if (userInterface === "tui" && requester === "model")
    return "in the TUI the user decides: /handoff --start begins the new session at once"
  if (parentID !== undefined) return "this is a subagent's session: its answer goes to the session that started it"
  const beyond = requester === "model" ? await whyNotAgent({ childSessions }, starting) : undefined
  if (beyond !== undefined) return beyond
  const started = await countStarted({ sessions, shouldStop: startDeadline() }, sessionID, await records())
  return started < MAX_STARTED_IN_A_ROW
    ? undefined
    : `${started} sessions in a row were started without a message of the user`
}

const SHOWN_MODELS = 5

const parseModel = (given: string): AgentAndModel["model"] => {
  const slash = given.indexOf("/")
  return { providerID: given.slice(0, Math.max(0, slash)), modelID: given.slice(slash + 1) }
}

const nameOf = ({ providerID, modelID }: AgentAndModel["model"]): string => `${providerID}/${modelID}`

/** @throws Error when the list cannot be read */
const required = <T>(what: string, answer: Result<T>): T => {
  if (answer.kind === "ok") return answer.value
  throw new Error(`The ${what} cannot be checked, and nothing was handed over: ${answer.reason}. Call again without it`)
}

/**
 * Checks the agent and the model that the new session is to have.
 *
 * @param current of the session that hands over
 * @throws Error for an unknown one, with the known ones; OpenCode itself takes any name and fails later
 */
export const chooseTarget = async (
  {
    childSessions,
    models,
  }: { childSessions: Pick<ChildSessions, "agents">; models: () => Promise<Result<ModelInfo[]>> },
  wanted: { readonly agent?: string | undefined; readonly model?: string | undefined },
  current: AgentAndModel | undefined,
): Promise<Partial<AgentAndModel> | undefined> => {
  let target: Partial<AgentAndModel> | undefined = current
  // A model that fills in each field leaves the ones that it does not need empty.
  if (wanted.agent?.trim()) {
    const all = required("agent", await childSessions.agents())
    const known = all.filter(({ mode, isHidden }) => mode !== "subagent" && !isHidden)
    const agent = known.find(({ name }) => name === wanted.agent)
    if (!agent)
      throw new Error(
        `There is no agent "${wanted.agent}" that a session can have, and nothing was handed over. There are: ${known.map(({ name }) => name).join(", ")}`,
      )
    target = { ...current, agent: agent.name, ...(agent.model ? { model: agent.model } : {}) }
  }
  if (wanted.model?.trim()) {
    const all = required("model", await models())
    const model = parseModel(wanted.model)
    if (!all.some((each) => isSameModel(each, model))) {
      const nearest = nearestNames(wanted.model, all.map(nameOf), SHOWN_MODELS)
      throw new Error(
        `There is no model "${wanted.model}", and nothing was handed over. Expected provider/model; the nearest of ${all.length}: ${nearest.join(", ")}`,
      )
    }
    target = { ...target, model }
  }
  return target
}
