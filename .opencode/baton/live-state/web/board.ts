import type { FoundState } from "../observe/state-files.ts"
import { type AgentView, type Doing, type TaskNews, toAgentView } from "../observe/view.ts"
import { isObject } from "../protocol.ts"

/** The data of one agent that a page receives. */
export type AgentUpdate = PageAgent & {
  /** Start of what it does now, ms since the epoch. */
  readonly since: number
  /** False when the observer started later: `since` is then the latest possible start. */
  readonly isSinceKnown: boolean
  /** History that the page does not have yet, oldest first. */
  readonly points: readonly HistoryPoint[]
  /** The points are the whole history and replace those of the page. */
  readonly isWhole: boolean
}

export type BoardUpdate = {
  /** The board's state after this update; the page sends it when it reconnects. */
  readonly sequence: number
  readonly agents: readonly AgentUpdate[]
  /** Keys of all agents; those not listed are gone. */
  readonly keys: readonly string[]
}

export type AgentBoard = {
  sequence(): number
  /** Takes in a statefile that was read; no effect when it shows nothing new. */
  see(key: string, project: string, found: FoundState, news: TaskNews | undefined, lookedAt: number): void
  /** The statefile was removed. */
  drop(key: string): void
  /** The changes since a sequence; everything for a new page, or for a sequence that is not of this board. */
  changesSince(sequence: number | undefined): BoardUpdate
}

type Entry = {
  agent: PageAgent
  sighting: Sighting
  points: { readonly sequence: number; readonly point: HistoryPoint }[]
  /** The board's sequence of the newest point that was dropped. */
  droppedUpTo: number
  /** The board's sequence of the newest change. */
  changedIn: number
  since: number
  isSinceKnown: boolean
}

/** Keeps each agent's state and history in bounded memory, and the changes since any earlier sequence. */
export const createAgentBoard = (): AgentBoard => {
  const entries = new Map<string, Entry>()
  let sequence = 0

  const record = (entry: Entry, points: readonly HistoryPoint[]): void => {
    for (const point of points) {
      entry.points.push({ sequence, point })
      if (isStretch(point)) entry.since = point.at
    }
    const excess = entry.points.splice(0, Math.max(0, entry.points.length - MAX_POINTS))
    entry.droppedUpTo = excess.at(-1)?.sequence ?? entry.droppedUpTo
  }

  const toUpdate = (entry: Entry, since: number): AgentUpdate => {
    const isWhole = entry.droppedUpTo > since || entry.points.every((each) => each.sequence > since)
    const points = entry.points.filter((each) => isWhole || each.sequence > since).map(({ point }) => point)
    return { ...entry.agent, since: entry.since, isSinceKnown: entry.isSinceKnown, points, isWhole }
  }

  return {
    sequence: () => sequence,
    see: (key, project, found, news, lookedAt) => {
      const before = entries.get(key)
      const agent = toPageAgent(key, project, found, news)
      const sighting = toSighting(project, found, lookedAt)
      const points = pointsBetween(before?.sighting, sighting, before?.points.at(-1)?.point.at)
      if (before && points.length === 0 && JSON.stringify(before.agent) === JSON.stringify(agent)) return
      sequence++
      const isSinceKnown = sighting.beganAt !== undefined || before !== undefined
      const entry = before ?? {
        agent,
        sighting,
        points: [],
        droppedUpTo: 0,
        changedIn: sequence,
        since: sighting.at,
        isSinceKnown,
      }
      entries.set(key, entry)
      if (points.some(isStretch)) entry.isSinceKnown = isSinceKnown
      Object.assign(entry, { agent, sighting, changedIn: sequence })
      record(entry, points)
    },
    drop: (key) => {
      if (entries.delete(key)) sequence++
    },
    changesSince: (known) => {
      const since = known !== undefined && known >= 0 && known <= sequence ? known : -1
      const changed = [...entries.values()].filter(({ changedIn }) => changedIn > since)
      return { sequence, agents: changed.map((entry) => toUpdate(entry, since)), keys: [...entries.keys()] }
    },
  }
}

/** Drawn as a stretch of time, up to the next stretch. */
type StretchKind = Doing["kind"]
/** Drawn as a mark at one moment. */
type MarkKind = "turn" | "compaction" | "handoff" | "session"

/** One thing that an observer has seen. Times are milliseconds since the epoch. */
export type HistoryPoint = {
  readonly at: number
  readonly kind: StretchKind | MarkKind
  /** Text of a permission or question. */
  readonly text?: string
  /** Number of events, when there was more than one between two looks. */
  readonly count?: number
}

/** The parts of a statefile that an agent's history is made from. */
export type Sighting = {
  /** Time of publication; time of the look for an agent that is gone. */
  readonly at: number
  readonly doing: Doing
  /** Start of the present stretch, if the state gives it. */
  readonly beganAt?: number
  /** Changes with the process or session, whose counters start anew. */
  readonly identity: string
  readonly turns: number
  readonly compactions: number
  readonly handoffs: number
}

/** Points kept per agent; the oldest are dropped. */
export const MAX_POINTS = 500

const STRETCHES: ReadonlySet<string> = new Set<StretchKind>([
  "gone",
  "idle",
  "busy",
  "started",
  "permission",
  "question",
])

const isStretch = ({ kind }: HistoryPoint): boolean => STRETCHES.has(kind)

const textOf = (doing: Doing): string => ("text" in doing ? doing.text : "")

const isSameDoing = (before: Doing, after: Doing): boolean =>
  before.kind === after.kind && textOf(before) === textOf(after)

const grown = (kind: MarkKind, at: number, before: number, after: number): HistoryPoint[] => {
  const count = after - before
  if (count <= 0) return []
  return [count === 1 ? { at, kind } : { at, kind, count }]
}

/**
 * Returns the points that are new since the last look, oldest first. The first look gives the agent's present stretch.
 *
 * @param lastAt time of the newest point so far: history never goes back, even if a clock does
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

type Wait =
  | { readonly kind: "permission"; readonly title: string; readonly type: string }
  | { readonly kind: "question"; readonly header: string; readonly text: string; readonly options: readonly string[] }

/** One agent as sent to the page: values and plain text, no markup. Times are milliseconds since the epoch. */
type PageAgent = {
  /** Stable while the statefile exists. */
  readonly key: string
  readonly project: string
  readonly name: string
  readonly doing: AgentView["doing"]["kind"]
  readonly waits: readonly Wait[]
  readonly session?: string
  readonly pid: number
  readonly task?: { readonly id: string; readonly role: string }
  readonly news?: PageNews
  readonly turns: number
  readonly compactions: number
  readonly handoffs: number
  readonly contextTokens?: number
  readonly model?: string
  readonly updatedAt: number
}

type PageNews = Pick<TaskNews, "title" | "status" | "handoff" | "claim"> & {
  /** Newest last. */
  readonly log: readonly { readonly at: number; readonly message: string }[]
}

/** A task's log may be long; older entries are in the ledger. */
const SHOWN_LOG_ENTRIES = 5
const MAX_LOG_CHARACTERS = 600

const text = (value: unknown): string => (typeof value === "string" ? value : "")
const fields = (value: unknown): { readonly [key: string]: unknown } => (isObject(value) ? value : {})
const time = (iso: string): number => {
  const ms = Date.parse(iso)
  return Number.isNaN(ms) ? 0 : ms
}

const waitsOf = ({ state, alive }: FoundState): Wait[] => {
  if (!alive) return []
  const waits: Wait[] = []
  const focus = fields(state.tui_focus)
  if (focus.ty === "permission") {
    const details = fields(focus.details)
    waits.push({ kind: "permission", title: text(details.title), type: text(details.type) })
  }
  if (isObject(state.pendingQuestion)) {
    const { header, text: asked, options } = state.pendingQuestion
    waits.push({
      kind: "question",
      header: text(header),
      text: text(asked),
      options: Array.isArray(options) ? options.filter((option) => typeof option === "string") : [],
    })
  }
  return waits
}

const toPageNews = ({ title, status, log, handoff, claim }: TaskNews): PageNews => ({
  title,
  status,
  ...(handoff === undefined ? {} : { handoff }),
  ...(claim === undefined ? {} : { claim }),
  log: log.slice(-SHOWN_LOG_ENTRIES).map(({ message, createdAt }) => ({
    at: time(createdAt),
    message: message.length > MAX_LOG_CHARACTERS ? `${message.slice(0, MAX_LOG_CHARACTERS)}…` : message,
  })),
})

export const toPageAgent = (key: string, project: string, found: FoundState, news: TaskNews | undefined): PageAgent => {
  const view = toAgentView(project, found, undefined)
  const { session, task, contextTokens, model } = view
  return {
    key,
    project,
    name: view.name,
    doing: view.doing.kind,
    waits: waitsOf(found),
    pid: Number(found.state.opencode_pid),
    ...(session === undefined ? {} : { session }),
    ...(task ? { task } : {}),
    ...(news ? { news: toPageNews(news) } : {}),
    turns: view.turns,
    compactions: view.compactions,
    handoffs: view.handoffs,
    ...(contextTokens === undefined ? {} : { contextTokens }),
    ...(model === undefined ? {} : { model }),
    updatedAt: time(found.ts),
  }
}

/** Steps that begin a stretch. */
const BEGINS: Readonly<Record<string, string>> = {
  "session.idle": "idle",
  "permission.asked": "permission",
  "permission.updated": "permission",
}

/** No statefile records an agent's end. With a heartbeat it was soon after the last state, else the time it was noticed. */
const goneAt = ({ state, ts }: FoundState, lookedAt: number): number =>
  fields(state.extensions).heartbeat_at === undefined ? lookedAt : time(ts)

/** @param lookedAt ms */
const toSighting = (project: string, found: FoundState, lookedAt: number): Sighting => {
  const { doing, since, session, turns, compactions, handoffs } = toAgentView(project, found, undefined)
  const step = fields(fields(found.state.agent).last_step)
  const began = since !== undefined && BEGINS[text(step.event_type)] === doing.kind ? { beganAt: time(since) } : {}
  return {
    at: doing.kind === "gone" ? goneAt(found, lookedAt) : time(found.ts),
    doing,
    ...began,
    identity: [found.state.opencode_pid, found.state.plugin_started_at, session].join(" "),
    turns,
    compactions,
    handoffs,
  }
}
