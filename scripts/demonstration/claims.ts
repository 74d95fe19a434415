import { isComplete, type Knowledge } from "./knowledge.ts"
import type { RecordedCompaction } from "./ledger-view.ts"

/** What one demo run left behind, as far as anybody can see it from outside. */
export type Evidence = {
  exitCode: number | null
  /** Compactions that OpenCode made. */
  compactions: number
  recorded: readonly RecordedCompaction[]
  specification: { ordered: string; inLedger: string }
  /** What the first request of each session and after each compaction told; undefined when the demo does not see them. */
  knowledge?: readonly Knowledge[]
  /** What the session after the crash was not told of where the work stood; undefined when there was none. */
  untold?: readonly string[]
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
export const EXPECTED_COMPACTIONS = 4

const isRecordedOnce = ({ compactions, recorded }: Evidence): boolean =>
  recorded.length === compactions && recorded.every(({ number }, index) => number === index + 1)

type Verdict = Pick<Claim, "holds" | "text">

const knowledgeClaim = ({ knowledge = [], untold, compactions }: Evidence): Verdict => {
  const complete = knowledge.filter(isComplete).length
  const expected = (untold ? 2 : 1) + compactions
  return {
    holds: complete === expected && compactions > 0,
    text: `Each request above tells task, role, specification, definition of done and constraint (${complete} of ${expected})`,
  }
}

const crashClaim = (untold: Evidence["untold"]): Verdict => {
  const remark = untold ? untold.map((part) => `, but not the ${part}`).join("") : " (it never came to that)"
  return {
    holds: untold?.length === 0,
    text: `After kill -9 a new session is told the last handoff, the first brief, the log and git${remark}`,
  }
}

/** @param scripted whether the demo's own model was used: only then can it promise what the agent does */
export const judge = (evidence: Evidence, scripted: boolean): Claim[] => {
  const { exitCode, compactions, recorded, specification, test, status, traces, root } = evidence
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
    ...(evidence.knowledge ? [knowledgeClaim(evidence), crashClaim(evidence.untold)] : []).map((verdict) => ({
      weight: asserted,
      ...verdict,
    })),
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
