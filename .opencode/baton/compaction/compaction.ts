import type { Hooks } from "@opencode-ai/plugin"
import { createLruMap, type LruMap, withDeadline } from "../host/async.ts"
import type { Change } from "../host/guard.ts"
import { describeError, type Log } from "../host/log.ts"
import { latestCompaction, showsPreviousSummary } from "../host/messages.ts"
import type { Sessions, StoredMessage } from "../host/sessions.ts"
import type { Outbox } from "../ledger/outbox-store.ts"
import type { SessionTask, TaskRegistry } from "../task/registry.ts"
import { createBudget, UNKNOWN_CONTEXT_TOKENS } from "./budget.ts"
import { type CompactionContext, type ContextDeps, loadContext, readInstructions } from "./context.ts"
import { createRecorder, type Recorder } from "./recorder.ts"
import { originalSpecification, type SessionState, type SessionStates, withoutOwnHandoff } from "./session-state.ts"
import { renderCompactionPrompt, taskInLedger } from "./texts.ts"
import type { SeenSession } from "./turns.ts"

/** Everything for the prompt but the previous summary, which only the hook can find. */
type Prepared = { readonly binding: SessionTask; readonly found: CompactionContext; readonly instructions: string }

/** Older preparations belong to a compaction that never came. */
export const PREPARATION_MS = 5_000

type Preparations = {
  /** Starts reading when OpenCode stores the request for a compaction, some time before it calls the hook. */
  begin(sessionID: string): void
  /** Gives what was started recently, else reads now. @returns undefined for a session without a task */
  take(sessionID: string): Promise<Prepared | undefined>
  forget(sessionID: string): void
}

export const createPreparations = (
  deps: ContextDeps & {
    tasks: Pick<TaskRegistry, "find">
    sessionStates: Pick<SessionStates, "load">
    log: Log
    /** Monotonic, in milliseconds. */
    clock: () => number
  },
): Preparations => {
  const { tasks, sessionStates, log, clock } = deps
  const begun = createLruMap<{ at: number; prepared: Promise<Prepared | undefined> }>()

  const prepare = async (sessionID: string): Promise<Prepared | undefined> => {
    const binding = await tasks.find(sessionID)
    if (!binding) return undefined
    const sessionState = await sessionStates.load(sessionID)
    const instructions = readInstructions(deps, sessionID)
    return { binding, found: await loadContext(deps, binding, sessionState), instructions }
  }

  return {
    begin: (sessionID) => {
      const prepared = prepare(sessionID)
      begun.set(sessionID, { at: clock(), prepared })
      prepared.catch((error: unknown) => {
        log.warn("compaction not prepared: the hook will", { sessionID, error: describeError(error) })
        begun.delete(sessionID)
      })
    },
    take: async (sessionID) => {
      const earlier = begun.get(sessionID)
      begun.delete(sessionID)
      if (!earlier || clock() - earlier.at >= PREPARATION_MS) return prepare(sessionID)
      return earlier.prepared.catch(() => prepare(sessionID))
    },
    forget: (sessionID) => void begun.delete(sessionID),
  }
}

type PreviousSummaries = {
  /**
   * Starts the search that `find` would have to wait for.
   *
   * @param isOver asked before each page
   */
  prepare(sessionID: string, isOver: () => boolean): void
  /**
   * Finds the summary that the new one must carry over: the newest with a text, in full. Called from the compacting hook.
   *
   * @param turnSeen a turn of the session ran in this process: it showed every summary, so that only a session resumed right
   *   into its compaction has to be searched
   * @param isBehindAnother no turn has run since the last compaction, whose summary may not be recorded yet (1.14 often
   *   compacts twice in a row)
   * @returns undefined when there is none, or when this OpenCode shows the same one to the summariser itself
   */
  find(
    sessionID: string,
    sessionState: SessionState,
    options: { turnSeen: boolean; isBehindAnother: boolean },
  ): Promise<string | undefined>
  forget(sessionID: string): void
}

const PAGE_MESSAGES = 50
/** Two compactions in a row have the summary, a continue message and the next request between them. */
const BEHIND_MESSAGES = 10
const MAX_PAGES = 10
const SEARCH_DEADLINE_MS = 700

const createPreviousSummaries = ({
  sessions,
  log,
}: {
  sessions: Pick<Sessions, "messages">
  log: Log
}): PreviousSummaries => {
  const readNewest = async (sessionID: string, count: number): Promise<readonly StoredMessage[]> => {
    const newest = await sessions.messages(sessionID, count)
    if (newest.kind === "ok") return newest.value.messages
    const { reason } = newest
    log.warn("newest messages unknown: the prior summary is carried over in any case", { sessionID, reason })
    return []
  }

  const searches = createLruMap<Promise<string | undefined>>()

  const search = async (sessionID: string, isOver: () => boolean): Promise<string | undefined> => {
    let cursor: string | undefined
    for (let page = 0; page < MAX_PAGES && !isOver(); page++) {
      const answer = await sessions.messages(sessionID, PAGE_MESSAGES, cursor)
      if (answer.kind === "failed") return undefined
      const found = latestCompaction(answer.value.messages)
      if (found) return found.summary
      if (answer.value.older === undefined) return undefined
      cursor = answer.value.older
    }
    return undefined
  }

  const searchOnce = (sessionID: string, isOver: () => boolean): Promise<string | undefined> => {
    const started = searches.get(sessionID) ?? search(sessionID, isOver)
    searches.set(sessionID, started)
    return started
  }

  return {
    prepare: (sessionID, isOver) => {
      searchOnce(sessionID, isOver).catch((error: unknown) =>
        log.warn("search for a prior summary failed", { sessionID, error: describeError(error) }),
      )
    },
    find: async (sessionID, sessionState, { turnSeen, isBehindAnother }) => {
      const recorded = sessionState.lastHandoff
      if (!isBehindAnother && !recorded && (turnSeen || sessionState.count > 0)) return undefined
      const newest = await readNewest(sessionID, isBehindAnother ? BEHIND_MESSAGES : 1)
      const isVisible = showsPreviousSummary(newest)
      const before = isBehindAnother ? latestCompaction(newest) : undefined
      const last = before && before.summary !== "" ? { summaryID: before.summaryID, text: before.summary } : recorded
      if (last) {
        const newestID = before?.summaryID ?? sessionState.recorded.at(-1)
        if (!isVisible || newestID !== last.summaryID) return last.text
        log.debug("the conversation still shows the prior summary", { sessionID })
        return undefined
      }
      if (isVisible) return undefined
      const searched = await withDeadline(
        searchOnce(sessionID, () => false),
        SEARCH_DEADLINE_MS,
      )
      return searched.kind === "done" && searched.value !== "" ? searched.value : undefined
    },
    forget: (sessionID) => {
      searches.delete(sessionID)
    },
  }
}

export type CompactingOutput = Parameters<NonNullable<Hooks["experimental.session.compacting"]>>[1]

type CompactionDeps = ContextDeps & {
  sessions: Sessions
  tasks: TaskRegistry
  sessionStates: SessionStates
  outbox: Pick<Outbox, "add" | "addIfMissing" | "pending" | "flush">
  seen: LruMap<SeenSession>
  now: () => Date
}

/** Enough of the newest messages to hold a compaction that has just ended. */
const NEWEST_MESSAGES = 20

/** Prepares the summariser's prompt and records the summary. */
export type Compaction = Recorder & {
  /** Starts reading for the hook when OpenCode stores the request for a compaction. */
  begin(sessionID: string): Promise<void>
  /** @returns the change to the compacting hook's output, or nothing for a session without a task */
  preparePrompt(sessionID: string, output: CompactingOutput): Promise<Change | undefined>
  /** Records a compaction that no turn follows, such as a manual one. */
  recordNewest(sessionID: string): Promise<void>
  forget(sessionID: string): void
}

export const createCompaction = (deps: CompactionDeps): Compaction => {
  const { tasks, sessionStates, outbox, seen, sessions, log, now } = deps
  const see = (sessionID: string, what: SeenSession): void => seen.set(sessionID, { ...seen.get(sessionID), ...what })
  const priorSummaries = createPreviousSummaries({ sessions, log })
  const preparations = createPreparations({ ...deps, clock: () => performance.now() })

  const gather = async (binding: SessionTask, sessionState: SessionState): Promise<CompactionContext> => {
    const fresh = seen.get(binding.sessionID)?.gathered
    see(binding.sessionID, { gathered: undefined })
    if (fresh?.identity.taskID !== binding.taskID) return loadContext(deps, binding, sessionState)
    const facts = { ...fresh.facts, compactions: sessionState.count, activity: sessionState.activity }
    return { ...fresh, facts, wasPrefetched: true }
  }
  const recorder = createRecorder({ sessionStates, sessions, outbox, gather, log, now })

  return {
    ...recorder,

    begin: async (sessionID) => {
      preparations.begin(sessionID)
      const isTurnSeen = () => seen.get(sessionID)?.isTurnSeen === true
      if (isTurnSeen() || !(await tasks.find(sessionID))) return
      const { count, lastHandoff } = await sessionStates.load(sessionID)
      if (count === 0 && !lastHandoff) priorSummaries.prepare(sessionID, isTurnSeen)
    },

    preparePrompt: async (sessionID, output) => {
      const prepared = await preparations.take(sessionID)
      if (!prepared) return undefined
      const { binding, instructions } = prepared
      const sessionState = await sessionStates.load(sessionID)
      const { count, activity: done } = sessionState
      const found = { ...prepared.found, facts: { ...prepared.found.facts, compactions: count, activity: done } }
      const { isTurnSeen: turnSeen = false, hasCompacted: isBehindAnother = false } = seen.get(sessionID) ?? {}
      const shown = seen.get(sessionID)?.isUncompacted ? withoutOwnHandoff(sessionState) : sessionState
      const priorSummary = await priorSummaries.find(sessionID, shown, { turnSeen, isBehindAnother })
      see(sessionID, { gathered: found, isSummaryExpected: true, hasCompacted: true, isUncompacted: false })
      const specification = originalSpecification(
        sessionState,
        binding.taskID,
        taskInLedger(found.identity)?.specification,
      )
      await sessionStates.update(sessionID, (current) => ({ ...current, specification }))
      // Not awaited: the context is in memory, and the record that follows is saved in turn.
      void sessionStates.save(sessionID)
      return () => {
        const { prompt, block } = renderCompactionPrompt({
          instructions,
          identity: found.identity,
          facts: found.facts,
          ...(priorSummary === undefined ? {} : { priorSummary }),
          otherContext: [...(output.prompt ? [output.prompt] : []), ...output.context],
          budget: createBudget(sessionState.contextTokens ?? UNKNOWN_CONTEXT_TOKENS),
        })
        output.prompt = prompt
        output.context.push(block)
        log.info("compaction prompt replaced", {
          sessionID,
          taskID: binding.taskID,
          characters: prompt.length,
          priorSummary: priorSummary !== undefined,
        })
      }
    },

    recordNewest: async (sessionID) => {
      const binding = await tasks.find(sessionID)
      if (!binding) return
      const newest = await sessions.messages(sessionID, NEWEST_MESSAGES)
      if (newest.kind === "failed") {
        log.warn("compaction not recorded yet: the next turn will", { sessionID, reason: newest.reason })
        return
      }
      const compaction = latestCompaction(newest.value.messages)
      if (compaction) await recorder.record(binding, compaction)
      else log.warn("compaction reported, but no summary found", { sessionID })
    },

    forget: (sessionID) => {
      preparations.forget(sessionID)
      priorSummaries.forget(sessionID)
    },
  }
}
