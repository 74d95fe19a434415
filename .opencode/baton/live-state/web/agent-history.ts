import type { Doing } from "../agent-view.ts"

/** What is drawn as a stretch of time; it lasts until the next of them. */
export type StretchKind = Doing["kind"]
/** What is drawn as a mark at one moment. */
export type MarkKind = "turn" | "compaction" | "handoff" | "session"

/** One thing that an observer has seen. Times are milliseconds since the epoch. */
export type HistoryPoint = {
  readonly at: number
  readonly kind: StretchKind | MarkKind
  /** What a permission or question is about. */
  readonly text?: string
  /** How many at once, when there was more than one between two looks. */
  readonly count?: number
}

/** What one look at a statefile shows of an agent, as far as its history is concerned. */
export type Sighting = {
  /** When the state was published; when it was looked at for an agent that is gone. */
  readonly at: number
  readonly doing: Doing
  /** When the doing began, where the state itself says so. */
  readonly beganAt?: number
  /** Another process or session begins its counters anew. */
  readonly identity: string
  readonly turns: number
  readonly compactions: number
  readonly handoffs: number
}

/** Points kept for one agent; the oldest go. */
export const MAX_POINTS = 500

const STRETCHES: ReadonlySet<string> = new Set<StretchKind>([
  "gone",
  "idle",
  "busy",
  "started",
  "permission",
  "question",
])

export const isStretch = ({ kind }: HistoryPoint): boolean => STRETCHES.has(kind)

const textOf = (doing: Doing): string => ("text" in doing ? doing.text : "")

const isSameDoing = (before: Doing, after: Doing): boolean =>
  before.kind === after.kind && textOf(before) === textOf(after)

const grown = (kind: MarkKind, at: number, before: number, after: number): HistoryPoint[] => {
  const count = after - before
  if (count <= 0) return []
  return [count === 1 ? { at, kind } : { at, kind, count }]
}

/**
 * What is new since the look before, oldest first. The first look gives the stretch that the agent is in.
 *
 * @param lastAt of the newest point so far: history never goes back, whatever clocks do
 */
export const pointsBetween = (
  before: Sighting | undefined,
  after: Sighting,
  lastAt = Number.NEGATIVE_INFINITY,
): HistoryPoint[] => {
  const at = Math.max(after.at, lastAt)
  const isSame = before?.identity === after.identity
  const marks =
    before && isSame
      ? [
          ...grown("compaction", at, before.compactions, after.compactions),
          ...grown("handoff", at, before.handoffs, after.handoffs),
          ...grown("turn", at, before.turns, after.turns),
        ]
      : []
  const session: HistoryPoint[] = before && !isSame && after.doing.kind !== "gone" ? [{ at, kind: "session" }] : []
  if (before && isSame && isSameDoing(before.doing, after.doing)) return marks
  const began = Math.min(at, Math.max(after.beganAt ?? at, lastAt))
  const text = textOf(after.doing)
  const stretch: HistoryPoint = { at: began, kind: after.doing.kind, ...(text === "" ? {} : { text }) }
  return [...session, ...marks, stretch].sort((a, b) => a.at - b.at)
}
