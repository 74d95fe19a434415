import type { RequirementId } from "../../test/requirements.ts"
import type { Detection } from "../../test/support/learning-sets.ts"
import type { FeatureName, RequestName } from "../../test/support/model/request-scenario.ts"
import type { WordSummariser } from "../../test/support/model/retention.ts"
import type { Summariser2 } from "../../test/support/model/retention-2.ts"
import type { OpenCodeBinary } from "../../test/support/opencode/opencode-binary.ts"

/** "" is a plain count. */
export type Unit = "ms" | "µs" | "×" | "characters" | "KB" | "MB" | "%" | ""

/** One measured quantity. `×` is the median of the ratios of n pairs. */
export type Figure = Record<"n" | "median" | "min" | "max", number> & {
  /** Stable name, for comparing runs. */
  id: string
  what: string
  /** OpenCode's version. */
  version: string
  unit: Unit
  /** Promised limit of the median. */
  below?: number
  /** Bounds of the true median at a confidence of about 95 %; absent for fewer than 6 values. */
  low?: number
  high?: number
}

type Bundle = "plain" | "baton"
type Beginning = "first request" | "new session after kill -9"
type Summariser = "faithful" | "careless"
type Added = Partial<Record<FeatureName | "bundle", number>>
type Compared = Record<"compactions" | "facts" | "named" | "start", number>

/** Rows of the tables of counts, by table name. */
export type Rows = {
  /** Outcome of one run of the retention scenario; `compactions` were requested, `compacted` happened. */
  retention: { version: string; bundle: Bundle; summariser: Summariser; exitCode: number | null } & Record<
    "compactions" | "compacted" | "factsKept" | "facts" | "turnsKnowingTask" | "turns",
    number
  >
  /**
   * How long a session of OpenCode 2 lived: turns after a compaction, those of them that name the task, the facts that the last one
   * holds, and whether one more message was answered.
   */
  survival: { version: string; bundle: Bundle; summariser: Summariser2; isAnswered: boolean } & Record<
    "compactions" | "lived" | "named" | "facts",
    number
  >
  /** Of what the user said after the first message, the part that the last request shows; `newest`: of the last five. */
  words: { version: string; subject: string; summariser: WordSummariser; compactions: number } & (
    | { failure: string }
    | Record<"kept" | "newest", number>
  )
  /** Parts of the task in a session's first request. */
  beginnings: { version: string; bundle: Bundle; request: Beginning; told: number; parts: number }
  /** Drafts in a real TUI; `arrived` means once, whole, right after the text typed before. */
  drafts: { version: string } & Record<"busyLoops" | "handoffs" | "arrived" | "lost" | "doubled" | "misplaced", number>
  /** Scores of the detector on one labelled set: see test/support/learning-sets.ts. */
  detection: Detection
  /** Characters of a plain OpenCode request, and the difference with one feature or all; a feature not named changes no byte. */
  additions: { version: string; request: RequestName; plain: number; added: Added }
  /** Results of one subject: facts are counted with the faithful summariser, named tasks with the careless one. */
  peers: { version: string; subject: string } & ({ failure: string } | Compared)
}

export type Tables = { figures: Figure[] } & { [Kind in keyof Rows]?: Rows[Kind][] }

export type Measurement = Tables & {
  requirement: RequirementId
  /** ISO 8601, UTC. */
  takenAt: string
  /** Facts needed to judge the figures; no host name, no paths. */
  machine: { cpu: string; cores: number; memoryGiB: number; system: string }
  /** One-minute load averages: above `machine.cores` the machine was overloaded. */
  load: { before: number; after: number }
}

export type Results = { version: 1; measurements: Record<string, Measurement> }

export type Context = {
  readonly binary: OpenCodeBinary
  /** Few rounds: a functional check, without usable figures. */
  readonly quick: boolean
  /** Reports progress to the user. */
  readonly say: (text: string) => void
  /** Adds a figure of this OpenCode; see `toFigure`. */
  readonly figure: (id: string, what: string, unit: Unit, values: readonly number[], below?: number) => void
  readonly row: <Kind extends keyof Rows>(kind: Kind, row: Rows[Kind]) => void
}

/** Measures one thing on one OpenCode. @throws on failure: no figure is left out silently */
export type Benchmark = (context: Context) => Promise<void>
