import type { AssistantMessage } from "@opencode-ai/sdk"
import type { Instance } from "../core/core.ts"
import type { Services } from "../core/services.ts"
import { createLruMap, lazy } from "../host/async.ts"
import type { Change } from "../host/guard.ts"
import { describeError, type Log } from "../host/log.ts"
import { createNote, isSummary, isSummaryRequest, latestCompaction } from "../host/messages.ts"
import { isSameModel, type ModelInfo, readModels, type StoredMessage } from "../host/sessions.ts"
import { settingsOrDefaults } from "../host/settings.ts"

/** The most that OpenCode keeps free in a context for an answer, and in a model's input; see docs/opencode-notes.md. */
const MOST_OUTPUT_TOKENS = 32_000
const MOST_INPUT_RESERVE_TOKENS = 20_000
/** The share of the room before a compaction at which an agent is asked at the latest. */
const LATEST_SHARE = 0.95

/** Tokens of the request and its answer, as OpenCode counts them for a compaction. */
const tokensOf = ({ tokens }: AssistantMessage): number =>
  tokens.input + tokens.output + tokens.cache.read + tokens.cache.write

const thresholdOf = ({ context, input, output = MOST_OUTPUT_TOKENS }: ModelInfo, at: number): number => {
  if (context === undefined) return Number.POSITIVE_INFINITY
  const compactsAt = Math.min(
    context - Math.min(output, MOST_OUTPUT_TOKENS),
    (input ?? context) - Math.min(output, MOST_INPUT_RESERVE_TOKENS),
  )
  return Math.min(at * context, compactsAt > 0 ? LATEST_SHARE * compactsAt : context)
}

/**
 * Finds the answer that filled the context: the first one since the newest compaction that reached the share. It is the same in
 * each later request, so that the note stands at one place and the provider's cache holds.
 */
export const findFilled = (
  messages: readonly StoredMessage[],
  models: readonly ModelInfo[],
  at: number,
): { readonly index: number; readonly share: number } | undefined => {
  // The newest turns before a compaction may stand behind its summary.
  const since = latestCompaction(messages)?.summaryID ?? ""
  for (const [index, message] of messages.entries()) {
    const { info } = message
    if (info.role !== "assistant" || info.id < since || isSummary(message)) continue
    const model = models.find((each) => isSameModel(each, info))
    if (model?.context === undefined || tokensOf(info) < thresholdOf(model, at)) continue
    return { index, share: tokensOf(info) / model.context }
  }
  return undefined
}

const renderAsk = (share: number): string =>
  [
    `[Baton] ${Math.round(share * 100)} % of this session's context is used, and the user wants such a session handed over (setting autoHandoff).`,
    "Bring the step you are at to where it can be left: commit or log what is done, and begin nothing new.",
    "Then call the tool handoff_session once, with `prompt`, `files` and `start: true`, tell the user what it answered, and end your turn.",
  ].join("\n")

export const createAutoHandoff = (
  { input: { client }, projectRoot }: Instance,
  { sessions, tasks }: Pick<Services, "sessions" | "tasks">,
  log: Log,
) => {
  const settings = lazy(async () => (await settingsOrDefaults(projectRoot, log)).autoHandoff)
  const models = lazy(async () => {
    const answer = await readModels(client)
    if (answer.kind === "ok") return answer.value
    throw new Error(answer.reason)
  })
  /** From 1.14 on a summariser's request shows neither a summary nor the request for one. */
  const compacting = createLruMap<true>()
  const known = createLruMap<{ isChild: boolean; wasAsked: boolean }>()

  const isChild = async (sessionID: string): Promise<boolean> => {
    const before = known.get(sessionID)
    if (before) return before.isChild
    const parent = await sessions.parent(sessionID)
    if (parent.kind === "failed") return true
    known.set(sessionID, { isChild: parent.value !== undefined, wasAsked: false })
    return parent.value !== undefined
  }

  return {
    /** A user's message arrived: reads what its request needs, beside OpenCode's own preparation of it. */
    userArrived: (sessionID: string): void => {
      compacting.delete(sessionID)
      void settings()
      models().catch((error: unknown) => log.warn("the models' limits are not known", { error: describeError(error) }))
    },
    /** The next request may be the summariser's. */
    compacting: (sessionID: string): void => compacting.set(sessionID, true),
    /** Wanted for a session that has a task and is no subagent's. */
    isWanted: async (sessionID: string): Promise<boolean> => {
      if ((await settings()) === undefined) return false
      const binding = await tasks.find(sessionID)
      return binding !== undefined && binding.origin !== "parent" && !(await isChild(sessionID))
    },
    /** @returns the change that asks the agent, in each request from the one after the share was reached */
    ask: async (sessionID: string, messages: StoredMessage[]): Promise<Change | undefined> => {
      const isForSummary = compacting.delete(sessionID) && latestCompaction(messages) === undefined
      const setting = await settings()
      if (!setting || isForSummary || isSummaryRequest(messages)) return undefined
      const filled = findFilled(messages, await models(), setting.at)
      const user = messages.slice(0, filled?.index).findLast(({ info }) => info.role === "user")
      if (!filled || !user) return undefined
      if (known.get(sessionID)?.wasAsked !== true) {
        known.set(sessionID, { isChild: false, wasAsked: true })
        log.info("the agent is asked to hand over", { sessionID, share: filled.share })
      }
      const { info } = user
      // Not beside the user's message, which may be far back: all that follows it would have to be cached anew.
      return () =>
        void messages.splice(filled.index + 1, 0, { info, parts: [createNote(info, renderAsk(filled.share))] })
    },
    forget: (sessionID: string): void => {
      compacting.delete(sessionID)
      known.delete(sessionID)
    },
  }
}
