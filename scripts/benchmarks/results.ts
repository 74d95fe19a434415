import type { RequirementId } from "../../test/requirements.ts"
import type { Score } from "../../test/support/learning-sets.ts"
import type { FeatureName, RequestName } from "../../test/support/request-scenario.ts"
import type { Machine } from "./machine.ts"
import type { Soak } from "./soak/soak-result.ts"
import { type Summary, summarise } from "./statistics.ts"
import type { SubjectName } from "./subjects.ts"

export type Unit = "ms" | "µs" | "×" | "characters" | "KB" | "MB" | "%"

/** One measured quantity. `×` is the median of the ratios of n pairs. */
export type Figure = Summary & {
  /** Stable name, for comparing runs. */
  id: string
  /** What was measured, for the table. */
  what: string
  /** OpenCode's version. */
  version: string
  unit: Unit
  /** The median is promised to stay under this. */
  below?: number
}

/** What one run of the retention scenario ended with. */
export type RetentionRow = {
  version: string
  bundle: "plain" | "baton"
  summariser: "faithful" | "careless"
  /** Compactions asked for, and seen. */
  compactions: number
  compacted: number
  factsKept: number
  facts: number
  turnsKnowingTask: number
  turns: number
  exitCode: number | null
}

/** How much of the task the request that begins a session is told. */
export type BeginningRow = {
  version: string
  bundle: "plain" | "baton"
  request: "first request" | "new session after kill -9"
  /** Of the parts that are looked for, those that stand in the request. */
  told: number
  parts: number
}

/** What became of the drafts that were handed over in a real TUI. */
export type DraftRow = {
  version: string
  /** Processes beside it that did nothing but take time from the processor. */
  busyLoops: number
  handoffs: number
  /** In the message that the model got: once, right behind what had been typed before, and whole. */
  arrived: number
  lost: number
  doubled: number
  misplaced: number
}

/** What the detector makes of one labelled set: see test/support/learning-sets.ts. */
export type DetectionRow = { set: string } & Omit<Score, "wrong" | "missed">

/** One feature's plugin alone, or all of them. */
export type AdditionColumn = FeatureName | "bundle"

/** What is added to one request: see test/support/request-scenario.ts. */
export type AdditionRow = {
  version: string
  request: RequestName
  /** Characters of the request in plain OpenCode. */
  plain: number
  /** Characters more with a feature; one that is not named leaves the request as it is, byte for byte. */
  added: Partial<Record<AdditionColumn, number>>
}

/** Whether a subject could be measured on a version. */
export type PeerRow = {
  version: string
  subject: SubjectName
  /** A peer's own version. */
  release?: string
  /** What came instead of figures; absent where it works. */
  failure?: string
  /** What it lacks here, so that its figures show only a part of it. */
  lacks?: string
}

/** What the retention scenario left with one subject, in `opencode serve`. */
export type PeerRetentionRow = {
  version: string
  subject: SubjectName
  summariser: "faithful" | "careless"
  /** Compactions asked for, and seen. */
  compactions: number
  compacted: number
  factsKept: number
  turnsKnowingTask: number
  turns: number
  /** How often the session stopped after a compaction and a user had to say "Go on." */
  toldToGoOn: number
}

export type PeerResults = { subjects: PeerRow[]; retention: PeerRetentionRow[] }

export type Measurement = {
  requirement: RequirementId
  /** ISO 8601, UTC. */
  takenAt: string
  machine: Machine
  /** Load averages over one minute, before and after: above `machine.cores`, the times are taken under pressure. */
  load: { before: number; after: number }
  figures: Figure[]
  retention?: RetentionRow[]
  beginnings?: BeginningRow[]
  drafts?: DraftRow[]
  detection?: DetectionRow[]
  additions?: AdditionRow[]
  peers?: PeerResults
  soak?: Soak
}

export const BENCHMARKS = [
  "load",
  "start",
  "hook",
  "event",
  "ledger",
  "retention",
  "tokens",
  "additions",
  "peers",
  "references",
  "transcript",
  "live-state",
  "tui-draft",
  "observe",
  "learning",
  "audit",
  "pass",
  "soak",
] as const

export type BenchmarkName = (typeof BENCHMARKS)[number]

export type Results = { version: 1; measurements: Partial<Record<BenchmarkName, Measurement>> }

const rounded = (value: number): number => Number(value.toPrecision(4))

/** A figure from its raw values, to four significant digits. */
export const toFigure = (about: Omit<Figure, keyof Summary>, values: readonly number[]): Figure => {
  const { n, median, min, max, low, high } = summarise(values)
  const bounds = low === undefined || high === undefined ? {} : { low: rounded(low), high: rounded(high) }
  return { ...about, n, median: rounded(median), min: rounded(min), max: rounded(max), ...bounds }
}

/** Whether a figure keeps its promise; undefined where there is none. */
export const meetsTarget = ({ median, below }: Figure): boolean | undefined =>
  below === undefined ? undefined : median < below

/** Whether a run with Baton lost nothing that the promise names: the task always, the facts where the summariser keeps them. */
export const keepsEverything = (row: RetentionRow): boolean =>
  row.exitCode === 0 &&
  row.compacted === row.compactions &&
  row.turnsKnowingTask === row.turns &&
  row.turns >= row.compactions &&
  (row.summariser === "careless" || (row.factsKept === row.facts && row.facts === row.compactions))

export const LEAST_PRECISION = 0.95
export const LEAST_RECALL = 0.6

/** Whether what is stored is right, and enough of it found. */
export const isPrecise = ({ precision, recall }: DetectionRow): boolean =>
  precision >= LEAST_PRECISION && recall >= LEAST_RECALL

/** Whether every draft arrived, once and in its place. */
export const losesNoDraft = ({ handoffs, arrived, lost, doubled, misplaced }: DraftRow): boolean =>
  arrived === handoffs && lost + doubled + misplaced === 0
