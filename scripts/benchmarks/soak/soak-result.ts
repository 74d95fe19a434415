import type { Sample } from "./sample.ts"
import { findTrend, type Trend } from "./trend.ts"

/** One quantity along a run, a value for each of `SessionSoak.at`. */
export type Line = {
  what: string
  unit: "MB" | "KB" | "" | "ms"
  values: number[]
  /** The slope per 100 compactions is promised to stay under this. */
  below?: number
}

/** One session through many compactions. */
export type SessionSoak = {
  version: string
  messages: number
  /** Compactions at each value. */
  at: number[]
  lines: Line[]
}

/** One quantity of a server before, while and after sessions are open; the bundle's alone, plain OpenCode taken off. */
export type ServerRow = {
  version: string
  what: string
  unit: Line["unit"]
  directories: number
  sessions: number
  /** Everything loaded, no session. */
  before: number
  /** All sessions open. */
  open: number
  /** All sessions deleted. */
  deleted: number
  disposed: number
  /** What is there more after the deletion than before is promised to stay under this. */
  below?: number
}

export type Soak = { sessions: SessionSoak[]; servers: ServerRow[] }

export const WHOLE = { compactions: 500, messages: 20_000, directories: 20, sessions: 200 } as const

const PER_COMPACTIONS = 100

/** Slope and bounds per 100 compactions. */
export const trendOf = ({ at }: Pick<SessionSoak, "at">, { values }: Pick<Line, "values">): Trend => {
  const trend = findTrend(at, values)
  const per = (slope: number): number => slope * PER_COMPACTIONS
  return { ...trend, slope: per(trend.slope), low: per(trend.low), high: per(trend.high) }
}

export const isFlat = (soak: Pick<SessionSoak, "at">, line: Line): boolean =>
  line.below === undefined || trendOf(soak, line).slope < line.below

export const isLetGo = ({ before, deleted, below }: ServerRow): boolean =>
  below === undefined || deleted - before < below

export const isWholeSession = ({ at, messages }: SessionSoak): boolean =>
  (at.at(-1) ?? 0) >= WHOLE.compactions && messages >= WHOLE.messages

export const isWholeServer = ({ directories, sessions }: ServerRow): boolean =>
  directories >= WHOLE.directories && sessions >= WHOLE.sessions

export const MEGA = 1e6
export const KILO = 1e3

export const totalDescriptors = ({ descriptors }: Sample): number =>
  Object.values(descriptors).reduce((sum, count) => sum + count, 0)
