import { isComplete, type Knowledge } from "./knowledge.ts"
import type { RecordedCompaction } from "./ledger-view.ts"

/** What one demo run left behind, as far as anybody can see it from outside. */
export type Evidence = {
  exitCode: number | null
  /** Compactions that OpenCode made. */
  compactions: number
  recorded: readonly RecordedCompaction[]
  specification: { ordered: string; inLedger: string }
  /** What the request after each compaction told; undefined when the demo does not see the requests. */
  knowledge?: readonly Knowledge[]
  test: { passes: boolean; summary: string }
  isFrozenFileUntouched: boolean
  status: string
  /** Files of this run elsewhere; undefined when OpenCode runs in the user's own home, where it keeps its log. */
  traces?: readonly string[]
  root: string
}

export type Claim = {
  /** A reported claim depends on what a model of the user's own does; it fails nothing. */
  weight: "asserted" | "reported"
  holds: boolean
  text: string
}

/** As many compactions as the scripted work brings about; with fewer, the demo shows less than it says. */
export const EXPECTED_COMPACTIONS = 5

const isRecordedOnce = ({ compactions, recorded }: Evidence): boolean =>
  recorded.length === compactions && recorded.every(({ number }, index) => number === index + 1)

const knowledgeClaim = (knowledge: readonly Knowledge[], compactions: number): Pick<Claim, "holds" | "text"> => {
  const complete = knowledge.filter(isComplete).length
  return {
    holds: complete === compactions && compactions > 0,
    text: `Each request after a compaction names task, role, definition of done and constraint (${complete} of ${compactions})`,
  }
}

/** @param scripted whether the demo's own model was used: only then can it promise what the agent does */
export const judge = (evidence: Evidence, scripted: boolean): Claim[] => {
  const { exitCode, compactions, recorded, specification, knowledge, test, status, traces, root } = evidence
  const asserted: Claim["weight"] = "asserted"
  const agents: Claim["weight"] = scripted ? "asserted" : "reported"
  const found = traces?.length ? `, but ${traces.slice(0, 3).join(", ")}` : ""
  const bytes = Buffer.byteLength(specification.ordered)
  return [
    ...(scripted
      ? [
          {
            weight: asserted,
            holds: exitCode === 0 && compactions >= EXPECTED_COMPACTIONS,
            text: `OpenCode went through ${EXPECTED_COMPACTIONS} compactions and ended well (${compactions} seen, exit code ${exitCode})`,
          },
        ]
      : [
          { weight: asserted, holds: exitCode === 0, text: `OpenCode ended well (exit code ${exitCode})` },
          { weight: agents, holds: compactions > 0, text: `The conversation was compacted (${compactions} times)` },
        ]),
    {
      weight: asserted,
      holds: isRecordedOnce(evidence),
      text: `Each compaction stands in the ledger exactly once (${recorded.length} of ${compactions})`,
    },
    {
      weight: agents,
      holds: specification.inLedger === specification.ordered,
      text: `The specification in the ledger is as it was ordered (${bytes} bytes, compared one by one)`,
    },
    ...(knowledge ? [{ weight: asserted, ...knowledgeClaim(knowledge, compactions) }] : []),
    {
      weight: agents,
      holds: test.passes && status === "done",
      text: `The test passes (${test.summary}) and the task is done (status: ${status})`,
    },
    {
      weight: agents,
      holds: evidence.isFrozenFileUntouched,
      text: "The user's constraint was obeyed: slugify.test.js is unchanged",
    },
    ...(traces
      ? [
          {
            weight: asserted,
            holds: traces.length === 0,
            text: `Nothing of this run is outside ${root} (home, checkout, temporary files)${found}`,
          },
        ]
      : []),
  ]
}

export const hasFailed = (claims: readonly Claim[]): boolean =>
  claims.some(({ weight, holds }) => weight === "asserted" && !holds)
