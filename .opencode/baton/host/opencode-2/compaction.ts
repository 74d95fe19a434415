import type { Hooks } from "@opencode-ai/plugin"
import { withDeadline } from "../async.ts"
import { describeError, type Log } from "../log.ts"
import type { CompactingOutput, Conversation, SummaryPlan } from "../port.ts"
import type { CompactionEvent, Context } from "./context.ts"
import { inTime, safely } from "./guard.ts"
import { RESCUED, shownSummary, toStoredMessages } from "./messages.ts"

/** A model may write for minutes; one that never ends would hold the session for ever. */
const SUMMARY_DEADLINE_MS = 300_000

/** The conversation as far as OpenCode tells in time. Never rejects. */
const readConversation = async (
  { session }: Pick<Context, "session">,
  { sessionID, agent, model }: CompactionEvent,
  log: Log,
): Promise<Conversation> => {
  try {
    const [entries, { parentID }] = await inTime(
      Promise.all([session.context({ sessionID }), session.get({ sessionID })]),
    )
    const messages = toStoredMessages(sessionID, entries, { agent, model })
    return { messages, summary: shownSummary(entries), isUsers: parentID === undefined }
  } catch (error) {
    log.warn("the conversation is not known", { sessionID, error: describeError(error) })
    return { messages: [], summary: "", isUsers: false }
  }
}

/** The provider compacts by itself: it gives no text, and OpenCode goes on with its own form of the conversation. */
const isNative = async ({ model: models }: Pick<Context, "model">, { model }: CompactionEvent): Promise<boolean> => {
  const { data } = await inTime(models.list({}))
  const found = data.find(({ id, providerID }) => id === model.id && providerID === model.providerID)
  return found?.settings?.compaction?.type === "native"
}

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
  const planFor = async (compaction: CompactionEvent): Promise<SummaryPlan | undefined> => {
    const output: CompactingOutput = { context: [] }
    await prepare({ sessionID: compaction.sessionID }, output)
    const { prompt, rescue, planWithoutTask } = output
    if (output.isLeftToOpenCode) {
      // OpenCode's prompt follows.
      const text = output.context.join("\n\n")
      if (text !== "") compaction.messages.push({ role: "user", content: [{ type: "text", text }] })
      return undefined
    }
    if (prompt !== undefined && rescue) return { prompt, rescue }
    return planWithoutTask?.(await readConversation(context, compaction, log))
  }
  const summarise = async (compaction: CompactionEvent): Promise<void> => {
    const { sessionID } = compaction
    if (await isNative(context, compaction).catch(() => false)) {
      log.info("the provider compacts by itself", { sessionID })
      return
    }
    const plan = await planFor(compaction)
    if (!plan) return
    const { prompt } = plan
    const asked = Promise.resolve().then(() => context.session.generate({ sessionID, prompt }))
    const outcome = await withDeadline(asked, SUMMARY_DEADLINE_MS)
    const answer = outcome.kind === "done" ? (outcome.value.text ?? "").trim() : ""
    const instead = plan.rescue(answer)
    if (instead === undefined) {
      compaction.result = { summary: answer, metadata: { baton: "summary" } }
      return
    }
    const error = outcome.kind === "failed" ? describeError(outcome.error) : undefined
    log.warn("the model wrote no summary that can be used: another text stands in", {
      sessionID,
      how: outcome.kind,
      error,
      characters: answer.length,
    })
    compaction.result = { summary: instead, metadata: { baton: RESCUED, answer } }
  }
  await context.session.hook("compaction", (compaction) =>
    safely(log, "compaction", compaction.sessionID, () => summarise(compaction)),
  )
}
