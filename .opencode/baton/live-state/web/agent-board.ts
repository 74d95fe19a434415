import type { TaskNews } from "../agent-view.ts"
import type { FoundState } from "../found-states.ts"
import { type HistoryPoint, isStretch, MAX_POINTS, pointsBetween, type Sighting } from "./agent-history.ts"
import { type PageAgent, toPageAgent, toSighting } from "./page-agent.ts"

/** What a page is told of one agent. */
export type AgentUpdate = PageAgent & {
  /** When it began what it does, ms since the epoch. */
  readonly since: number
  /** False when the observer came later: it has done so at least since then. */
  readonly isSinceKnown: boolean
  /** History that the page has not got yet, oldest first. */
  readonly points: readonly HistoryPoint[]
  /** The points are all there are, and take the place of those that the page has. */
  readonly isWhole: boolean
}

export type BoardUpdate = {
  /** The board's state that this leads to; what a page has when it comes again. */
  readonly sequence: number
  readonly agents: readonly AgentUpdate[]
  /** Every agent there is: those that are not named are no more. */
  readonly keys: readonly string[]
}

export type AgentBoard = {
  sequence(): number
  /** Takes a look at a statefile in; nothing happens when it shows nothing new. */
  see(key: string, project: string, found: FoundState, news: TaskNews | undefined, lookedAt: number): void
  /** The statefile is no more. */
  drop(key: string): void
  /** What changed since then; everything for a page that has nothing yet or whose state is not of this board. */
  changesSince(sequence: number | undefined): BoardUpdate
}

type Entry = {
  agent: PageAgent
  sighting: Sighting
  points: { readonly sequence: number; readonly point: HistoryPoint }[]
  /** The board's sequence of the newest point that was let go. */
  droppedUpTo: number
  /** The board's sequence of the newest change. */
  changedIn: number
  since: number
  isSinceKnown: boolean
}

/** What the observer has seen of every agent, in bounded memory, and what has changed since any earlier moment. */
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
