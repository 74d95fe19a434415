import type { RequirementId } from "../../test/requirements.ts"
import type { Score } from "../../test/support/learning-sets.ts"
import type { FeatureName, RequestName } from "../../test/support/model/request-scenario.ts"
import type { OpenCodeBinary } from "../../test/support/opencode/opencode-binary.ts"

/** "" counts something. */
export type Unit = "ms" | "µs" | "×" | "characters" | "KB" | "MB" | "%" | ""

/** One measured quantity. `×` is the median of the ratios of n pairs. */
export type Figure = Record<"n" | "median" | "min" | "max", number> & {
  /** Stable name, for comparing runs. */
  id: string
  what: string
  /** OpenCode's. */
  version: string
  unit: Unit
  /** The median is promised to stay under this. */
  below?: number
  /** Bounds between which the true median lies with a confidence of about 95 %; absent for fewer than 6 values. */
  low?: number
  high?: number
}

type Bundle = "plain" | "baton"
type Beginning = "first request" | "new session after kill -9"
type Summariser = "faithful" | "careless"
type Added = Partial<Record<FeatureName | "bundle", number>>
type Compared = Record<"compactions" | "facts" | "named" | "start", number>

/** Rows of tables of what is counted, by the name of the table. */
export type Rows = {
  /** What one run of the retention scenario ended with; `compactions` were asked for, and `compacted` seen. */
  retention: { version: string; bundle: Bundle; summariser: Summariser; exitCode: number | null } & Record<
    "compactions" | "compacted" | "factsKept" | "facts" | "turnsKnowingTask" | "turns",
    number
  >
  /** How much of the task the request that begins a session is told. */
  beginnings: { version: string; bundle: Bundle; request: Beginning; told: number; parts: number }
  /** What became of the drafts in a real TUI; one arrives once, whole, right behind what had been typed before. */
  drafts: { version: string } & Record<"busyLoops" | "handoffs" | "arrived" | "lost" | "doubled" | "misplaced", number>
  /** What the detector makes of one labelled set: see test/support/learning-sets.ts. */
  detection: { set: string } & Omit<Score, "wrong" | "missed">
  /** Characters of a request in plain OpenCode, and those more with one feature or all; one not named changes no byte. */
  additions: { version: string; request: RequestName; plain: number; added: Added }
  /** What a subject came to: facts are kept with the faithful summariser, and the task is named with the careless one. */
  peers: { version: string; subject: string } & ({ failure: string } | Compared)
}

export type Tables = { figures: Figure[] } & { [Kind in keyof Rows]?: Rows[Kind][] }

export type Measurement = Tables & {
  requirement: RequirementId
  /** ISO 8601, UTC. */
  takenAt: string
  /** What a reader needs to judge the figures; no host name, no paths. */
  machine: { cpu: string; cores: number; memoryGiB: number; system: string }
  /** Load averages over one minute: above `machine.cores`, the times are taken under pressure. */
  load: { before: number; after: number }
}

export type Results = { version: 1; measurements: Record<string, Measurement> }

export type Context = {
  readonly binary: OpenCodeBinary
  /** Few rounds: to see that it works, not to learn a figure. */
  readonly quick: boolean
  /** Tells the person who waits what happens now. */
  readonly say: (text: string) => void
  /** Adds a figure of this OpenCode; see `toFigure`. */
  readonly figure: (id: string, what: string, unit: Unit, values: readonly number[], below?: number) => void
  readonly row: <Kind extends keyof Rows>(kind: Kind, row: Rows[Kind]) => void
}

/** Measures one thing on one OpenCode. @throws when that fails: a missing figure is never left out silently */
export type Benchmark = (context: Context) => Promise<void>
