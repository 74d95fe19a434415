import type { ChildSessions } from "../host/child-sessions.ts"
import type { Log } from "../host/log.ts"
import type { Sessions, StoredMessage } from "../host/sessions.ts"
import type { ChainLink } from "./chain-rules.ts"

/** Deeper than any policy allows, so that damaged data ends somewhere. */
const MAX_LEVELS = 64
const NEWEST_MESSAGES = 10
/** Agents by which OpenCode does its own work in a session. */
const INTERNAL: ReadonlySet<string> = new Set(["compaction", "title", "summary"])

const agentOf = ({ info }: StoredMessage): string => (info.role === "user" ? info.agent : info.mode)

export type ChainRead =
  | { readonly kind: "chain"; readonly stack: ChainLink[] }
  | { readonly kind: "unreadable"; readonly cause: string }

/**
 * Who is at work from the root session down to the caller, by the sessions' stored parents: built-in subagents count, and
 * no agent can claim another place.
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

/** Ends a session's turn and those of every session below it, again until nothing new turns up. */
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
