import { createLruMap, type LruMap, withDeadline } from "../host/async.ts"
import type { Change } from "../host/guard.ts"
import { describeError, type Log } from "../host/log.ts"
import { type CompletedCompaction, latestCompaction, showsPreviousSummary } from "../host/messages.ts"
import type { CompactingOutput } from "../host/port.ts"
import type { Sessions } from "../host/sessions.ts"
import type { Settings } from "../host/settings.ts"
import { parseHandoffTitle } from "../ledger/description.ts"
import type { Outbox } from "../ledger/outbox-store.ts"
import { fenced, parseTask, taskText } from "../task/parse.ts"
import type { SessionTask, TaskRegistry } from "../task/registry.ts"
import { createBudget, UNKNOWN_CONTEXT_TOKENS } from "./budget.ts"
import { type CompactionContext, type ContextDeps, loadContext, readInstructions } from "./context.ts"
import { createRecorder } from "./recorder.ts"
import { renderRescue } from "./rescue.ts"
import { patchMemo, type SessionMemo } from "./session-memo.ts"
import {
  handoffText,
  hasOwnHandoff,
  originalSpecification,
  type SessionState,
  type SessionStates,
  withoutOwnHandoff,
} from "./session-state.ts"
import { isRefusal, judgeBeside, judgeSummary, summaryPart } from "./summary.ts"
import { handoffBody, renderCompactionPrompt, taskInLedger, withoutWords } from "./texts.ts"

/** The material of a prompt, read when OpenCode stores the request for a compaction, some time before it calls the hook. */
type Prepared = {
  readonly binding: SessionTask
  readonly context: CompactionContext
  readonly instructions: string
  /** For a session that was resumed right into its compaction: its newest summary, "" when it has none. */
  readonly searched: Promise<string> | undefined
}

/** Older preparations belong to a compaction that never came. */
export const PREPARATION_MS = 5_000

export const createPreparations = (
  deps: ContextDeps & {
    tasks: Pick<TaskRegistry, "find">
    sessionStates: Pick<SessionStates, "load">
    /** Searches the session's messages; undefined when they need no search. */
    search: (sessionID: string, sessionState: SessionState) => Promise<string> | undefined
    log: Log
    /** Monotonic, in milliseconds. */
    clock: () => number
  },
) => {
  const { tasks, sessionStates, search, log, clock } = deps
  const begun = createLruMap<{ at: number; prepared: Promise<Prepared | undefined> }>()

  const prepare = async (sessionID: string): Promise<Prepared | undefined> => {
    const binding = await tasks.find(sessionID)
    if (!binding) return undefined
    const sessionState = await sessionStates.load(sessionID)
    const searched = search(sessionID, sessionState)
    const instructions = readInstructions(deps, sessionID)
    return { binding, context: await loadContext(deps, binding, sessionState), instructions, searched }
  }

  return {
    begin: (sessionID: string): void => {
      const prepared = prepare(sessionID)
      begun.set(sessionID, { at: clock(), prepared })
      prepared.catch((error: unknown) => {
        log.warn("compaction not prepared: the hook reads again", { sessionID, error: describeError(error) })
        begun.delete(sessionID)
      })
    },
    /** Gives what was started recently, else reads now. @returns undefined for a session without a task */
    take: async (sessionID: string): Promise<Prepared | undefined> => {
      const earlier = begun.get(sessionID)
      begun.delete(sessionID)
      if (!earlier || clock() - earlier.at >= PREPARATION_MS) return prepare(sessionID)
      return earlier.prepared.catch(() => prepare(sessionID))
    },
    forget: (sessionID: string): void => void begun.delete(sessionID),
  }
}

const PAGE_MESSAGES = 50
const MAX_PAGES = 10
const SEARCH_DEADLINE_MS = 700

/**
 * Searches a session for its newest summary, page by page; without cursors (1.2.15) in the newest page alone. Never rejects.
 *
 * @param isOver asked before each page
 * @returns "" when none is found
 */
const searchSummary = async (
  sessions: Pick<Sessions, "messages">,
  sessionID: string,
  isOver: () => boolean,
): Promise<string> => {
  let cursor: string | undefined
  for (let page = 0; page < MAX_PAGES && !isOver(); page++) {
    const answer = await sessions.messages(sessionID, PAGE_MESSAGES, cursor)
    if (answer.kind === "failed") return ""
    const found = latestCompaction(answer.value.messages)
    if (found) return found.summary
    if (answer.value.older === undefined) return ""
    cursor = answer.value.older
  }
  return ""
}

type CompactionDeps = ContextDeps & {
  sessions: Sessions
  tasks: TaskRegistry
  sessionStates: SessionStates
  outbox: Pick<Outbox, "add" | "pending" | "flush">
  memos: LruMap<SessionMemo>
  /** Tells whether another session was seen at work now. */
  isAtWork: (sessionID: string) => Promise<boolean>
  /** Reads the setting. */
  summaryWriter: () => Promise<Settings["compaction"]>
  now: () => Date
}

/** Enough of the newest messages to hold a compaction that has just ended. */
const NEWEST_MESSAGES = 20
/** Two compactions in a row have the summary, a continue message and the next request between them. */
const IN_A_ROW_MESSAGES = 10

/**
 * The handoffs that other sessions wrote since this one has the task; for a task that was named after a compaction all of them,
 * since the summariser does not see the text beside the message that names it. The one that this session began with is not among
 * them: it is carried as its own earlier handoff.
 */
const handoffsBeside = (
  { sessionID, taskID, boundAt }: SessionTask,
  handoffs: readonly string[],
  { count, opening, lastHandoff }: SessionState,
): readonly string[] => {
  const begunWith = lastHandoff && withoutWords(lastHandoff.text)
  const isNamedSince = count > 0 && opening?.taskID === taskID && opening.compactions === count
  return handoffs.filter((section) => {
    const title = parseHandoffTitle(section)
    if (title === undefined || title.sessionID === sessionID || withoutWords(handoffBody(section)) === begunWith)
      return false
    return isNamedSince || title.at > boundAt
  })
}

type Summary = { readonly summaryID: string; readonly text: string }

/** The newest summary, behind the last one that says more. */
const newestWith = (
  recorded: Summary | undefined,
  { summaryID, summary }: CompletedCompaction,
  instructions: string,
): Summary => {
  const before = recorded?.summaryID === summaryID ? undefined : recorded
  if (!before || !judgeSummary(summary, summaryPart(before.text), instructions).saysLess)
    return { summaryID, text: summary }
  return { ...before, text: `${before.text}\n\nThe newest summary, which says less:\n${fenced(summary)}` }
}

/** The message that set the task, and what the user said in it. */
const taskMessageOf = (binding: SessionTask): CompactingOutput["taskMessage"] => {
  const { messageID: id, taskID, said } = binding
  if (id === undefined) return undefined
  const words = said.words.find(({ messageID }) => messageID === id)?.text ?? ""
  return { id, text: parseTask(words)?.taskID === taskID ? words : `${taskText(binding)}\n\n${words}`.trimEnd() }
}

export type Compaction = ReturnType<typeof createCompaction>

/** Prepares the summariser's prompt and records the summary. */
export const createCompaction = (deps: CompactionDeps) => {
  const { tasks, sessionStates, outbox, memos, sessions, isAtWork, summaryWriter, notices, log, now } = deps
  const isTurnSeen = (sessionID: string): boolean => memos.get(sessionID)?.isTurnSeen === true
  /** A turn that ran in this process showed every summary: only a session resumed right into its compaction is searched. */
  const needsSearch = (sessionID: string, { count, lastHandoff }: SessionState): boolean =>
    count === 0 && !lastHandoff && !isTurnSeen(sessionID)
  const preparations = createPreparations({
    ...deps,
    clock: () => performance.now(),
    search: (sessionID, sessionState) =>
      needsSearch(sessionID, sessionState)
        ? searchSummary(sessions, sessionID, () => isTurnSeen(sessionID))
        : undefined,
  })

  /**
   * Finds the summary that the new one must carry over: the newest with a text, in full. One that is not recorded yet is
   * among the newest messages, since 1.14 often compacts twice in a row.
   *
   * @returns undefined when there is none, or when this OpenCode shows the same one to the summariser itself
   */
  const findPreviousSummary = async (
    sessionID: string,
    sessionState: SessionState,
    { searched, instructions }: Pick<Prepared, "searched" | "instructions">,
  ): Promise<string | undefined> => {
    const newest = await sessions.messages(sessionID, IN_A_ROW_MESSAGES)
    if (newest.kind === "failed")
      log.warn("newest messages unknown: the prior summary is carried over in any case", {
        sessionID,
        reason: newest.reason,
      })
    const messages = newest.kind === "ok" ? newest.value.messages : []
    const isVisible = showsPreviousSummary(messages)
    const latest = latestCompaction(messages)
    const recorded = sessionState.lastHandoff
    const last = latest && latest.summary !== "" ? newestWith(recorded, latest, instructions) : recorded
    if (last) {
      const newestID = latest?.summaryID ?? sessionState.recorded.at(-1)
      if (!isVisible || newestID !== last.summaryID) return last.text
      log.debug("the conversation still shows the prior summary", { sessionID })
      return undefined
    }
    if (isVisible || !searched || !needsSearch(sessionID, sessionState)) return undefined
    const found = await withDeadline(searched, SEARCH_DEADLINE_MS)
    return found.kind === "done" && found.value !== "" ? found.value : undefined
  }

  const takeContext = async (binding: SessionTask, sessionState: SessionState): Promise<CompactionContext> => {
    const fresh = memos.get(binding.sessionID)?.context
    patchMemo(memos, binding.sessionID, { context: undefined })
    if (fresh?.identity.taskID !== binding.taskID) return loadContext(deps, binding, sessionState)
    const facts = { ...fresh.facts, compactions: sessionState.count, activity: sessionState.activity }
    return { ...fresh, facts }
  }
  const recorder = createRecorder({
    sessionStates,
    sessions,
    outbox,
    loadContext: takeContext,
    instructions: (sessionID) => readInstructions(deps, sessionID),
    notices,
    log,
    now,
  })

  return {
    ...recorder,

    /** Starts reading for the hook when OpenCode stores the request for a compaction. */
    begin: preparations.begin,
    forget: preparations.forget,

    /** @returns the change to the compacting hook's output, or nothing for a session without a task */
    preparePrompt: async (sessionID: string, output: CompactingOutput): Promise<Change | undefined> => {
      const [prepared, writer] = await Promise.all([preparations.take(sessionID), summaryWriter()])
      const isLeftToOpenCode = writer === "opencode"
      if (!prepared)
        return isLeftToOpenCode
          ? () => {
              output.isLeftToOpenCode = true
            }
          : undefined
      const { binding, instructions } = prepared
      const sessionState = await sessionStates.load(sessionID)
      const { count, activity } = sessionState
      const { note, opening } = sessionState
      const hasShell = (note ?? opening)?.hasShell ?? true
      const context: CompactionContext = {
        ...prepared.context,
        identity: { ...prepared.context.identity, hasShell },
        facts: { ...prepared.context.facts, compactions: count, activity },
      }
      const others = await Promise.all(
        handoffsBeside(binding, context.handoffs, sessionState).map(async (section) => {
          const writer = parseHandoffTitle(section)?.sessionID ?? ""
          const task = await tasks.readStored(writer)
          const isElsewhere = task === undefined && context.identity.claim?.session === writer
          const isNow = isElsewhere || (await isAtWork(writer))
          return { section, kind: task?.origin === "parent" ? "subagent" : isNow ? "at work" : "earlier" } as const
        }),
      )
      const shown = memos.get(sessionID)?.isUncompacted ? withoutOwnHandoff(sessionState) : sessionState
      const previousSummary = await findPreviousSummary(sessionID, shown, prepared)
      const isOthers = shown.lastHandoff !== undefined && !hasOwnHandoff(shown)
      const [ofOthers] = context.handoffs
      const earlier =
        handoffText(sessionState, binding.taskID) ?? previousSummary ?? (ofOthers && handoffBody(ofOthers))
      patchMemo(memos, sessionID, { context, isSummaryExpected: true, isUncompacted: false })
      const specification = originalSpecification(
        sessionState,
        binding.taskID,
        taskInLedger(context.identity)?.specification.untrusted,
      )
      await sessionStates.update(sessionID, (current) => ({ ...current, specification }))
      // Not awaited: the context is in memory, and the record that follows is saved in turn.
      void sessionStates.save(sessionID)
      return () => {
        const { prompt, block } = renderCompactionPrompt({
          instructions,
          identity: context.identity,
          facts: context.facts,
          otherHandoffs: others,
          // What another session wrote is not in the conversation.
          previousSummary: output.showsSummary && !isOthers ? undefined : previousSummary,
          otherContext: [...(output.prompt ? [output.prompt] : []), ...output.context],
          budget: createBudget(sessionState.contextTokens ?? UNKNOWN_CONTEXT_TOKENS),
        })
        output.context.push(block)
        if (isLeftToOpenCode) {
          output.isLeftToOpenCode = true
          log.info("the summary is left to OpenCode", { sessionID, taskID: binding.taskID, characters: block.length })
          return
        }
        output.prompt = prompt
        output.taskMessage = taskMessageOf(binding)
        output.rescue = (answer) => {
          const isRefused = isRefusal(answer, instructions)
          if (!isRefused && !judgeBeside(sessionState.lastHandoff, { summary: answer }, instructions).saysLess)
            return undefined
          const kept = isRefused ? "" : answer
          return renderRescue({ answer: kept, said: binding.said, facts: context.facts, earlier })
        }
        log.info("compaction prompt replaced", {
          sessionID,
          taskID: binding.taskID,
          characters: prompt.length,
          priorSummary: previousSummary !== undefined,
        })
      }
    },

    /** Finds a compaction that no turn may follow, such as a manual one. @returns a function that records it */
    findNewest: async (sessionID: string): Promise<() => Promise<void>> => {
      const binding = await tasks.find(sessionID)
      if (!binding) return async () => {}
      const newest = await sessions.messages(sessionID, NEWEST_MESSAGES)
      return async () => {
        if (newest.kind === "failed") {
          log.warn("compaction not recorded yet: the next turn records it", { sessionID, reason: newest.reason })
          return
        }
        const compaction = latestCompaction(newest.value.messages)
        const hasShell = (await sessionStates.load(sessionID)).opening?.hasShell ?? true
        if (compaction) await (await recorder.record(binding, compaction, hasShell)).saved
        else log.warn("compaction reported, but no summary found", { sessionID })
      }
    },
  }
}
