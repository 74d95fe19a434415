import type { Hooks } from "@opencode-ai/plugin"
import { withDeadline } from "../async.ts"
import { describeError, type Log } from "../log.ts"
import type { CompactingOutput } from "../port.ts"
import type { CompactionEvent, Context } from "./context.ts"
import { safely } from "./guard.ts"
import { RESCUED } from "./messages.ts"

/** A model may write for minutes; one that never ends would hold the session for ever. */
const SUMMARY_DEADLINE_MS = 300_000

/**
 * Has the session's model write the summary by a feature's prompt, and gives OpenCode the result. OpenCode 2's own way ends the turn,
 * and each one after it, when the answer is empty or lacks a heading of its own template; here the feature's text stands in.
 */
export const hookCompaction = async (
  context: Context,
  prepare: Hooks["experimental.session.compacting"],
  log: Log,
): Promise<void> => {
  if (!prepare) return
  const summarise = async (compaction: CompactionEvent): Promise<void> => {
    const { sessionID } = compaction
    const output: CompactingOutput = { context: [] }
    await prepare({ sessionID }, output)
    if (output.prompt === undefined) return
    const prompt = [output.prompt, ...output.context].join("\n\n")
    const asked = Promise.resolve().then(() => context.session.generate({ sessionID, prompt }))
    const outcome = await withDeadline(asked, SUMMARY_DEADLINE_MS)
    const answer = outcome.kind === "done" ? (outcome.value.text ?? "").trim() : ""
    const { rescue } = output
    if (rescue ? rescue.isUsable(answer) : answer !== "") {
      compaction.result = { summary: answer, metadata: { baton: "summary" } }
      return
    }
    const error = outcome.kind === "failed" ? describeError(outcome.error) : undefined
    log.warn("the model wrote no summary that can be used", { sessionID, how: outcome.kind, error, rescued: !!rescue })
    if (rescue) compaction.result = { summary: rescue.text, metadata: { baton: RESCUED } }
  }
  await context.session.hook("compaction", (compaction) =>
    safely(log, "compaction", compaction.sessionID, () => summarise(compaction)),
  )
}
