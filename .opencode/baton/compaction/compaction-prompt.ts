import { type Facts, renderFacts } from "../task/activity.ts"
import { joinWithinBudget, type Meter, type Piece } from "./budget.ts"
import { type TaskIdentity, taskPieces } from "./task-block.ts"

export type CompactionPromptInput = {
  /** prompts/handoff.md or the built-in text. */
  instructions: string
  identity: TaskIdentity
  facts: Facts
  /** The summary to carry over, unless the conversation still shows it. */
  priorSummary?: string
  /** What other plugins had put into output.context, which a replaced prompt would drop. */
  otherContext: readonly string[]
  meter: Meter
}

/** The facts as a piece: least in rank, since git and prog can tell most of them again. */
export const factsPiece = (facts: Facts): Piece => ({
  name: "facts",
  text: renderFacts(facts),
  rank: 6,
  share: 0.25,
  source: "git and the session's own messages",
})

/** Task block and facts within the budget; the same text goes to the prompt and to output.context. */
const renderTaskAndFacts = (identity: TaskIdentity, facts: Facts, meter: Meter): string =>
  joinWithinBudget([...taskPieces(identity), factsPiece(facts)], meter)

/**
 * The whole text that replaces OpenCode's compaction prompt.
 *
 * The prior summary is carried in full and outside the budget: OpenCode's own prompt carries it too, and dropping it is
 * what makes agents forget.
 */
export const renderCompactionPrompt = (input: CompactionPromptInput): { prompt: string; block: string } => {
  const block = renderTaskAndFacts(input.identity, input.facts, input.meter)
  const prior = input.priorSummary?.trim()
  const parts = [
    input.instructions.trim(),
    "# What is known for certain\nWritten by program, not by a model. Keep every id, path and number exactly as it stands here.",
    block,
    ...(prior
      ? [
          `# The earlier handoff\nIt is discarded after this: whatever is still true must stand in the new one.\n\n<earlier-handoff>\n${prior}\n</earlier-handoff>`,
        ]
      : []),
    ...input.otherContext.map((text) => text.trim()).filter((text) => text !== ""),
  ]
  return { prompt: parts.join("\n\n"), block }
}
