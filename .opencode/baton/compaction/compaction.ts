import type { Hooks } from "@opencode-ai/plugin"
import type { RecentMap } from "../host/async.ts"
import type { Change } from "../host/guard.ts"
import { findCompletedCompaction } from "../host/messages.ts"
import type { Sessions } from "../host/sessions.ts"
import type { Outbox } from "../ledger/outbox-entry.ts"
import type { TaskBinding, TaskRegistry } from "../task/registry.ts"
import { createMeter, UNKNOWN_CONTEXT_TOKENS } from "./budget.ts"
import { renderCompactionPrompt } from "./compaction-prompt.ts"
import { type GatherDeps, type Gathered, gatherIdentityAndFacts } from "./gather.ts"
import { type CompactionJournal, type Journals, originalSpecification, withoutOwnHandoff } from "./journal.ts"
import { createPreparations } from "./preparations.ts"
import { createPriorSummaries } from "./prior-summary.ts"
import { createRecorder, type Recorder } from "./recorder.ts"
import { taskInLedger } from "./task-block.ts"
import type { SeenSession } from "./turns.ts"

export type CompactingOutput = Parameters<NonNullable<Hooks["experimental.session.compacting"]>>[1]

export type CompactionDeps = GatherDeps & {
  sessions: Sessions
  tasks: TaskRegistry
  journals: Journals
  outbox: Pick<Outbox, "add" | "addUnlessKnown" | "waiting" | "flush">
  seen: RecentMap<SeenSession>
  now: () => Date
}

/** As many of the newest messages as surely hold a compaction that has just ended. */
const NEWEST_MESSAGES = 20

/** Prepares the summariser's prompt and records what came of it. */
export type Compaction = Recorder & {
  /** OpenCode has stored the request for a compaction: what the hook will need is read now. */
  begin(sessionID: string): Promise<void>
  /** @returns the change to the compacting hook's output, or nothing for a session without a task */
  preparePrompt(sessionID: string, output: CompactingOutput): Promise<Change | undefined>
  /** For a compaction that no turn follows, such as a manual one. */
  recordNewest(sessionID: string): Promise<void>
  forget(sessionID: string): void
}

export const createCompaction = (deps: CompactionDeps): Compaction => {
  const { tasks, journals, outbox, seen, sessions, log, now } = deps
  const see = (sessionID: string, what: SeenSession): void => seen.set(sessionID, { ...seen.get(sessionID), ...what })
  const priorSummaries = createPriorSummaries({ sessions, log })
  const preparations = createPreparations({ ...deps, clock: () => performance.now() })

  const gather = async (binding: TaskBinding, journal: CompactionJournal): Promise<Gathered> => {
    const fresh = seen.get(binding.sessionID)?.gathered
    see(binding.sessionID, { gathered: undefined })
    if (fresh?.identity.taskID !== binding.taskID) return gatherIdentityAndFacts(deps, binding, journal)
    const facts = { ...fresh.facts, compactions: journal.count, activity: journal.activity }
    return { ...fresh, facts, wasPrepared: true }
  }
  const recorder = createRecorder({ journals, sessions, outbox, gather, log, now })

  return {
    ...recorder,

    begin: async (sessionID) => {
      preparations.begin(sessionID)
      const isTurnSeen = () => seen.get(sessionID)?.isTurnSeen === true
      if (isTurnSeen() || !(await tasks.find(sessionID))) return
      const { count, lastHandoff } = await journals.load(sessionID)
      if (count === 0 && !lastHandoff) priorSummaries.prepare(sessionID, isTurnSeen)
    },

    preparePrompt: async (sessionID, output) => {
      const prepared = await preparations.take(sessionID)
      if (!prepared) return undefined
      const { binding, instructions } = prepared
      const journal = await journals.load(sessionID)
      const { count, activity: done } = journal
      const found = { ...prepared.found, facts: { ...prepared.found.facts, compactions: count, activity: done } }
      const { isTurnSeen: turnSeen = false, hasCompacted: isBehindAnother = false } = seen.get(sessionID) ?? {}
      const shown = seen.get(sessionID)?.isUncompacted ? withoutOwnHandoff(journal) : journal
      const priorSummary = await priorSummaries.find(sessionID, shown, { turnSeen, isBehindAnother })
      see(sessionID, { gathered: found, isSummaryExpected: true, hasCompacted: true, isUncompacted: false })
      const specification = originalSpecification(journal, binding.taskID, taskInLedger(found.identity)?.specification)
      await journals.update(sessionID, (current) => ({ ...current, specification }))
      // Nothing waits for the disk here: what was gathered is in memory, and the record that follows is saved in turn.
      void journals.save(sessionID)
      return () => {
        const { prompt, block } = renderCompactionPrompt({
          instructions,
          identity: found.identity,
          facts: found.facts,
          ...(priorSummary === undefined ? {} : { priorSummary }),
          otherContext: [...(output.prompt ? [output.prompt] : []), ...output.context],
          meter: createMeter(journal.contextTokens ?? UNKNOWN_CONTEXT_TOKENS),
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
      const compaction = findCompletedCompaction(newest.value.messages)
      if (compaction) await recorder.record(binding, compaction)
      else log.warn("compaction reported, but no summary found", { sessionID })
    },

    forget: (sessionID) => {
      preparations.forget(sessionID)
      priorSummaries.forget(sessionID)
    },
  }
}
