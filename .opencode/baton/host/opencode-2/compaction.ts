import type { Hooks } from "@opencode-ai/plugin"
import { withDeadline } from "../async.ts"
import { describeError, type Log } from "../log.ts"
import type { CompactingOutput, Conversation, SummaryPlan } from "../port.ts"
import { cutText } from "../text.ts"
import type { CompactionEvent, Context, RequestMessage } from "./context.ts"
import { inTime, safely } from "./guard.ts"
import { RESCUED, shownSummary, standing, toStoredMessages } from "./messages.ts"

/** A model may write for minutes; one that never ends would hold the session for ever. */
const SUMMARY_DEADLINE_MS = 300_000

/** The conversation as far as OpenCode tells in time. Never rejects. */
const readConversation = async (
  { session }: Pick<Context, "session">,
  { sessionID, agent, model }: CompactionEvent,
  log: Log,
): Promise<Conversation> => {
  try {
    const [all, { parentID, revert }] = await inTime(
      Promise.all([session.context({ sessionID }), session.get({ sessionID })]),
    )
    const entries = standing(all, revert)
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

/** Shown of a part that is no text, such as a tool's output. */
const PART_CHARACTERS = 2_000

const shownMessage = ({ role, content }: RequestMessage): string => {
  const parts = content.map((part) => part.text ?? cutText(JSON.stringify(part), PART_CHARACTERS))
  return `[${role}]\n${parts.join("\n")}`
}

/**
 * Asks the session's model, with the conversation before the prompt. Where that fails, as for one that is too long, the older part alone
 * is given as a text: OpenCode keeps the newest messages beside the summary.
 */
const askForSummary = async (
  { session, generate }: Pick<Context, "session" | "generate">,
  { sessionID, model: { id, providerID }, messages }: CompactionEvent,
  prompt: string,
  log: Log,
): Promise<string> => {
  try {
    return (await session.generate({ sessionID, prompt })).text ?? ""
  } catch (error) {
    log.warn("no summary of the whole conversation: its older part is given", {
      sessionID,
      error: describeError(error),
    })
    const older = `<conversation>\n${messages.map(shownMessage).join("\n\n")}\n</conversation>`
    return (await generate.text({ model: { id, providerID }, prompt: `${older}\n\n${prompt}` })).text ?? ""
  }
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
  type Plan = SummaryPlan & Pick<CompactingOutput, "taskMessage">
  const planFor = async (compaction: CompactionEvent): Promise<Plan | undefined> => {
    const output: CompactingOutput = { context: [], showsSummary: true }
    await prepare({ sessionID: compaction.sessionID }, output)
    const { prompt, rescue, planWithoutTask, taskMessage } = output
    if (output.isLeftToOpenCode) {
      // OpenCode's prompt follows.
      const text = output.context.join("\n\n")
      if (text !== "") compaction.messages.push({ role: "user", content: [{ type: "text", text }] })
      return undefined
    }
    if (prompt !== undefined && rescue) return { prompt, rescue, taskMessage }
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
    const outcome = await withDeadline(askForSummary(context, compaction, plan.prompt, log), SUMMARY_DEADLINE_MS)
    const answer = outcome.kind === "done" ? outcome.value.trim() : ""
    const instead = plan.rescue(answer)
    if (instead === undefined) {
      compaction.result = { summary: answer, metadata: { baton: "summary", task: plan.taskMessage } }
      return
    }
    const error = outcome.kind === "failed" ? describeError(outcome.error) : undefined
    log.warn("the model wrote no summary that can be used: another text stands in", {
      sessionID,
      how: outcome.kind,
      error,
      characters: answer.length,
    })
    compaction.result = { summary: instead, metadata: { baton: RESCUED, answer, task: plan.taskMessage } }
  }
  await context.session.hook("compaction", (compaction) =>
    safely(log, "compaction", compaction.sessionID, () => summarise(compaction)),
  )
}
