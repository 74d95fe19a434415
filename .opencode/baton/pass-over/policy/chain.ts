import type { ChildSessions } from "../../host/child-sessions.ts"
import type { Log } from "../../host/log.ts"
import type { Sessions, StoredMessage } from "../../host/sessions.ts"
import { nearestNames } from "../../task/parse.ts"
import { type PassOverError, passOverError } from "../errors.ts"

export type ChainLink = { readonly agent: string; readonly session_id: string }

export type ChainQuestion = {
  /** Agents at work from the root session to the caller, by the sessions' parents; at least the caller. */
  readonly stack: readonly ChainLink[]
  readonly subagent: string
  readonly knownAgents: readonly string[]
  readonly canReceivePasses: boolean
  /** Delegations allowed from the root session downwards. */
  readonly maxDepth: number
}

/** Renders a chain such as `build (ses_1) → scout (ses_2) → audit`. */
export const renderChain = (stack: readonly ChainLink[], subagent: string): string =>
  [...stack.map(({ agent, session_id }) => `${agent} (${session_id})`), subagent].join(" → ")

/** The error for a chain that cannot be read: its depth is unknown, so no work is passed. @param cause the obstacle */
export const unreadableChain = (cause: string): PassOverError =>
  passOverError("E020", { message: "The chain of sessions above this one could not be read", cause })

/** The error for one more pass of a root session and all sessions below it. */
export const passLimitError = (passes: number, maxPasses: number): PassOverError =>
  passOverError("E004", {
    message: `The session and those below it have made ${passes} passes; ${maxPasses} are allowed`,
    cause: `max_passes_per_session is ${maxPasses}`,
  })

/**
 * Checks that the chain allows a pass: the subagent exists, is not on the active stack, and the depth is not used up. Depth counts
 * delegations, up to and including the maximum; a return removes its agent from the stack.
 */
export const checkChain = (question: ChainQuestion): PassOverError | undefined => {
  const { stack, subagent, knownAgents, canReceivePasses, maxDepth } = question
  const cause = renderChain(stack, subagent)
  if (!knownAgents.includes(subagent)) {
    const nearest = nearestNames(subagent, knownAgents)
    return passOverError("E001", {
      message: `There is no subagent ${JSON.stringify(subagent)}`,
      cause: nearest.length === 0 ? "This project has no subagents" : `The nearest names are ${nearest.join(", ")}`,
    })
  }
  if (!canReceivePasses) {
    return passOverError("E001", {
      message: `${subagent} receives no passes`,
      cause: "can_receive_passes is false for it",
      nextStep: "Choose another subagent, or do the work yourself.",
    })
  }
  if (stack.at(-1)?.agent === subagent) {
    const nextStep = "You are this agent: do the work yourself."
    return passOverError("E003", { message: `${subagent} would pass work to itself`, cause, nextStep })
  }
  if (stack.some(({ agent }) => agent === subagent))
    return passOverError("E003", { message: `${subagent} is at work in this chain and waits for its result`, cause })
  if (stack.length <= maxDepth) return undefined
  const message = `This would be delegation ${stack.length}; ${maxDepth} are allowed`
  return passOverError("E002", { message, cause })
}

/** Deeper than any policy allows; bounds damaged data. */
const MAX_LEVELS = 64
const NEWEST_MESSAGES = 10
/** Agents of OpenCode's internal work in a session. */
const INTERNAL: ReadonlySet<string> = new Set(["compaction", "title", "summary"])

const agentOf = ({ info }: StoredMessage): string => (info.role === "user" ? info.agent : info.mode)

type ChainRead =
  | { readonly kind: "chain"; readonly stack: ChainLink[] }
  | { readonly kind: "unreadable"; readonly cause: string }

/**
 * Reads the chain from the root session to the caller by the sessions' stored parents: built-in subagents count, and no agent can
 * claim another position.
 */
export const readChain = async (
  sessions: Pick<Sessions, "parent" | "messages">,
  caller: ChainLink,
): Promise<ChainRead> => {
  const stack: ChainLink[] = [caller]
  for (let level = 0; level < MAX_LEVELS; level++) {
    const child = stack[0]?.session_id ?? ""
    const parent = await sessions.parent(child)
    if (parent.kind === "failed") return { kind: "unreadable", cause: `${child}: ${parent.reason}` }
    if (parent.value === undefined) return { kind: "chain", stack }
    const session_id = parent.value
    if (stack.some((link) => link.session_id === session_id)) break
    const newest = await sessions.messages(session_id, NEWEST_MESSAGES)
    if (newest.kind === "failed") return { kind: "unreadable", cause: `${session_id}: ${newest.reason}` }
    const agent = newest.value.messages.map(agentOf).findLast((name) => !INTERNAL.has(name))
    if (agent === undefined) return { kind: "unreadable", cause: `${session_id} does not say which agent works there` }
    stack.unshift({ agent, session_id })
  }
  return { kind: "unreadable", cause: "the sessions' parents lead in a circle" }
}

/** Aborts the turns of a session and of every session below it, repeatedly until no new session appears. */
export const abortTree = async (
  sessions: Pick<ChildSessions, "abort" | "children">,
  sessionID: string,
  log: Pick<Log, "warn">,
): Promise<void> => {
  const seen = new Set<string>()
  const open = [sessionID]
  while (open.length > 0) {
    const current = open.pop() ?? ""
    seen.add(current)
    const aborted = await sessions.abort(current)
    if (aborted.kind === "failed") log.warn("a session was not ended", { sessionID: current, reason: aborted.reason })
    const children = await sessions.children(current)
    if (children.kind === "failed")
      log.warn("sessions below are unknown", { sessionID: current, reason: children.reason })
    else open.push(...children.value.filter((child) => !seen.has(child)))
  }
}
