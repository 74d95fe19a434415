import { count, text } from "../../host/schema.ts"
import { isOver } from "../web/page/words.js"
import type { FoundState } from "./state-files.ts"
import type { AgentView, Status } from "./view.ts"

/** One thing that was seen of an agent. Times are milliseconds since the epoch. */
export type HistoryEvent = {
  readonly at: number
  /** A status lasts until the next one; the others are moments. */
  readonly kind: Status["kind"] | "turn" | "compaction" | "handoff" | "session"
  /** Text of a permission or question. */
  readonly text?: string
  /** Number of them, if there was more than one between two looks. */
  readonly count?: number
}

/** The parts of a statefile that an agent's history is made from. */
export type Sample = {
  /** Time of publication; for an agent that is gone, of its last word. */
  readonly at: number
  readonly doing: Status
  /** Start of the present status, if it is known. */
  readonly since?: number
  /** Changes with the process or session, whose counters start anew. */
  readonly identity: string
  readonly turns: number
  readonly compactions: number
  readonly handoffs: number
}

/** Events kept for each agent; the oldest are dropped. */
export const MAX_EVENTS = 300

const MOMENTS: ReadonlySet<HistoryEvent["kind"]> = new Set(["turn", "compaction", "handoff", "session"])
export const isStatus = ({ kind }: HistoryEvent): boolean => !MOMENTS.has(kind)

const textOf = (doing: Status): string => ("text" in doing ? doing.text : "")

const counted = (kind: HistoryEvent["kind"], at: number, count: number): HistoryEvent[] =>
  count <= 0 ? [] : [count === 1 ? { at, kind } : { at, kind, count }]

/**
 * Returns the events since the last look, oldest first. The first look gives the agent's present status.
 *
 * @param lastAt time of the newest event so far: history never goes back, even if a clock does
 */
export const eventsBetween = (
  before: Sample | undefined,
  after: Sample,
  lastAt = Number.NEGATIVE_INFINITY,
): HistoryEvent[] => {
  const at = Math.max(after.at, lastAt)
  const isSame = before?.identity === after.identity
  const moments = (["compaction", "handoff", "turn"] as const).flatMap((kind) => {
    const counter = `${kind}s` as const
    return before && isSame ? counted(kind, at, after[counter] - before[counter]) : []
  })
  if (before && isSame && before.doing.kind === after.doing.kind && textOf(before.doing) === textOf(after.doing))
    return moments
  const text = textOf(after.doing)
  const began = Math.min(at, Math.max(after.since ?? at, lastAt))
  const status: HistoryEvent = { at: began, kind: after.doing.kind, ...(text === "" ? {} : { text }) }
  const session: HistoryEvent[] = before && !isSame && !isOver(after) ? [{ at, kind: "session" }] : []
  return [...session, ...moments, status].sort((one, other) => one.at - other.at)
}

export const toSample = ({ state }: FoundState, { doing, since, session, ...view }: AgentView): Sample => ({
  at: Date.parse(view.updatedAt) || 0,
  doing,
  ...(since === undefined || isOver({ doing }) ? {} : { since: Date.parse(since) || 0 }),
  identity: [count(state.opencode_pid), text(state.plugin_started_at), session].join(" "),
  turns: view.turns,
  compactions: view.compactions,
  handoffs: view.handoffs,
})
