import type { Facts } from "../task/activity.ts"
import { joinWithinBudget, type Meter, type Piece } from "./budget.ts"
import { factsPiece } from "./compaction-prompt.ts"
import { type TaskIdentity, taskPieces } from "./task-block.ts"

export type ResumeNoteInput = {
  identity: TaskIdentity
  facts: Facts
  /** Which compaction of this session this was, from 1; 0 for one of the session that it is a fork of. */
  number: number
  /** What the summariser wrote, trimmed; empty when it wrote nothing. */
  summary: string
  /** The newest handoff with a text before this one; stands in for an empty summary. */
  earlierHandoff?: string
  /** Another session wrote that one, so that this summary is the first to carry it on: it may have left it out. */
  isInherited?: boolean
  meter: Meter
}

const recordText = ({ identity: { taskID, ledger }, summary }: ResumeNoteInput): string => {
  if (ledger === "unknown") return `The ledger has no task ${taskID}, so that the summary is not recorded there.`
  return summary === ""
    ? "Its summary came out empty and is recorded in prog as such."
    : "The summary below is the handoff and is already recorded in prog: do not record it again."
}

const leadText = (input: ResumeNoteInput): string => {
  const { identity, number } = input
  const of = number === 0 ? " before this session was forked" : ` (compaction ${number} of this session)`
  return [
    `[Baton] The conversation before this point was compacted${of}. ${recordText(input)}`,
    `You are the ${identity.role} on task ${identity.taskID} and go on with it. What follows comes from the user and from prog; where the summary disagrees, this counts.`,
  ].join("\n")
}

const nextText = ({ identity: { taskID, ledger } }: ResumeNoteInput): string =>
  ledger === "unknown"
    ? "Next: the next step of the handoff. Tell the user that the ledger has no such task."
    : `Next command: \`prog show ${taskID}\` if anything is unclear, else the next step of the handoff. Go on recording as you work: \`prog log ${taskID} "…"\` for each step, \`prog desc\` for the handoff section only.`

const earlierText = ({ summary, earlierHandoff = "", isInherited = false }: ResumeNoteInput): string => {
  const text = earlierHandoff.trim()
  if (text === "" || (summary !== "" && !isInherited)) return ""
  const heading =
    summary === "" ? "The last handoff that has a text" : "The handoff before this session, older than the summary"
  return `## ${heading}\n${text}`
}

/** What the agent reads next to the summary in the turns after a compaction: at most the budget, all of it included. */
export const renderResumeNote = (input: ResumeNoteInput): string => {
  const { identity, facts, meter } = input
  const show = `prog show ${identity.taskID}`
  const pieces: Piece[] = [
    { name: "notice", text: leadText(input), rank: -2, share: 1, source: show },
    ...taskPieces(identity),
    { name: "earlier handoff", text: earlierText(input), rank: 3.5, share: 0.35, source: show },
    factsPiece(facts),
    { name: "next", text: nextText(input), rank: -1, share: 1, source: show },
  ]
  return joinWithinBudget(pieces, meter)
}
