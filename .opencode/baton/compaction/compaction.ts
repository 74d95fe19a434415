import type { Hooks } from "@opencode-ai/plugin"
import type { Event } from "@opencode-ai/sdk"
import { findCompletedCompaction, isAwaitingSummary } from "../host/completed-compaction.ts"
import { withDeadline } from "../host/deadline.ts"
import type { Change } from "../host/guard.ts"
import { showTool } from "../host/hidden-tools.ts"
import { describeError } from "../host/log.ts"
import type { ModelName } from "../host/model-context.ts"
import { createRecentMap } from "../host/recent-map.ts"
import { noteTextOf, withNote } from "../host/request-note.ts"
import type { Sessions, StoredMessage } from "../host/sessions.ts"
import type { Outbox } from "../ledger/outbox-entry.ts"
import type { ToolUse } from "../task/activity.ts"
import type { TaskBinding } from "../task/binding.ts"
import { parseTask } from "../task/parse.ts"
import type { TaskRegistry } from "../task/registry.ts"
import { collectUserText } from "../task/user-text.ts"
import { createActivityTracker } from "./activity-tracker.ts"
import { createMeter, UNKNOWN_CONTEXT_TOKENS } from "./budget.ts"
import { renderCompactionPrompt } from "./compaction-prompt.ts"
import { type GatherDeps, type Gathered, gatherIdentityAndFacts } from "./gather.ts"
import { type CompactionJournal, type Journals, originalSpecification, withoutOwnHandoff } from "./journal.ts"
import type { Openings } from "./openings.ts"
import { createPreparations } from "./preparations.ts"
import { createPriorSummaries } from "./prior-summary.ts"
import { createRecorder } from "./recorder.ts"
import { createSessionWork } from "./session-work.ts"
import { taskInLedger } from "./task-block.ts"
import { createTodoLists } from "./todo-lists.ts"

type CompactingOutput = Parameters<NonNullable<Hooks["experimental.session.compacting"]>>[1]

export type CompactionDeps = Omit<GatherDeps, "todos"> & {
  sessions: Sessions
  tasks: TaskRegistry
  journals: Journals
  outbox: Pick<Outbox, "add" | "addUnlessKnown" | "waiting" | "flush">
  openings: Openings
  now: () => Date
}

/** As many of the newest messages as surely hold a compaction that has just ended. */
const NEWEST_MESSAGES = 20

/** What this process saw of one session. */
type SeenSession = {
  /** What the compacting hook gathered, for the record that follows within seconds. */
  gathered?: Gathered | undefined
  /** Its turns pass through this process: what its conversation shows is known. */
  isTurnSeen?: boolean
  /** From 1.14 on the messages on their way to the summariser pass through here as well, without any summary. */
  isSummaryExpected?: boolean
  /** No turn has passed since the compacting hook: what it led to is in no conversation that was seen. */
  hasCompacted?: boolean
  /** Its newest turn showed no compaction: there was none, or the user reverted it. */
  isUncompacted?: boolean
}

/** Of the 3 s that the hook of a request has. */
const NOTE_READY_MS = 2_500
const TASK_DEADLINE_MS = 1_000

/** The tool that an earlier session can be read with. */
const READ_TOOL = "read_session"

export type Compaction = {
  /**
   * A user's message arrived, and the session's task is known where the message names it: what its request needs is asked
   * for now.
   *
   * @param isNew the session began in this process, so that there is nothing from before
   */
  userArrived(sessionID: string, model: ModelName, isNew: boolean): void
  modelUsed(sessionID: string, contextTokens: number): void
  toolUsed(sessionID: string, use: ToolUse): undefined
  /** @returns the change to the compacting hook's output, or nothing for a session without a task */
  preparePrompt(sessionID: string, output: CompactingOutput): Promise<Change | undefined>
  /** @returns the change that puts the note next to the newest summary, or nothing when there is no call for it */
  remind(messages: StoredMessage[]): Promise<Change | undefined>
  observe(event: Event): void
  stop(): void
}

export const createCompaction = (deps: CompactionDeps): Compaction => {
  const { tasks, journals, outbox, sessions, root, log, now } = deps
  const seen = createRecentMap<SeenSession>()
  const see = (sessionID: string, what: SeenSession): void => seen.set(sessionID, { ...seen.get(sessionID), ...what })
  const priorSummaries = createPriorSummaries({ sessions, log })
  const todos = createTodoLists(sessions)
  const gatherDeps: GatherDeps = { ...deps, todos }
  const preparations = createPreparations({ ...gatherDeps, tasks, journals, clock: () => performance.now() })
  const activity = createActivityTracker({ tasks, journals, root })
  const work = createSessionWork()

  const gather = async (binding: TaskBinding, journal: CompactionJournal): Promise<Gathered> => {
    const fresh = seen.get(binding.sessionID)?.gathered
    see(binding.sessionID, { gathered: undefined })
    if (fresh?.identity.taskID !== binding.taskID) return gatherIdentityAndFacts(gatherDeps, binding, journal)
    const facts = { ...fresh.facts, compactions: journal.count, activity: journal.activity }
    return { ...fresh, facts, wasPrepared: true }
  }
  const recorder = createRecorder({ journals, sessions, outbox, gather, log, now })

  const forget = async (sessionID: string): Promise<void> => {
    // A record that is being made would be kept again after it was forgotten.
    await work.over(sessionID)
    activity.forget(sessionID)
    seen.delete(sessionID)
    preparations.forget(sessionID)
    deps.openings.forget(sessionID)
    todos.forget(sessionID)
    priorSummaries.forget(sessionID)
    await tasks.forget(sessionID)
    await journals.forget(sessionID)
    log.debug("session deleted: its state is forgotten", { sessionID })
  }

  /** For a compaction that no turn follows, such as a manual one. */
  const recordNewest = async (sessionID: string): Promise<void> => {
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
  }

  const inBackground = (sessionID: string, begun: Promise<void>): void => {
    begun.catch((error: unknown) => log.error("background work failed", { sessionID, error: describeError(error) }))
  }

  const modelUsed = (sessionID: string, contextTokens: number): void => {
    if (tasks.peek(sessionID)) void journals.update(sessionID, (journal) => ({ ...journal, contextTokens }))
  }

  const prepare = async (sessionID: string, model: ModelName, isNew: boolean): Promise<void> => {
    const binding = tasks.peek(sessionID) ?? (await tasks.find(sessionID))
    if (binding) await deps.openings.begin(binding, model)
    const isTurnSeen = () => seen.get(sessionID)?.isTurnSeen === true
    if (!binding || isNew || isTurnSeen()) return
    const { count, lastHandoff } = await journals.load(sessionID)
    if (count === 0 && !lastHandoff) priorSummaries.prepare(sessionID, isTurnSeen)
    await todos.find(sessionID)
  }

  /**
   * The user's message that names the session's task, else the first. A message that is changed breaks the provider's cache
   * from there on, so that it is the same one in each request.
   */
  const findAnchor = (messages: readonly StoredMessage[], { taskID }: TaskBinding): StoredMessage | undefined => {
    const users = messages.filter(({ info }) => info.role === "user")
    return users.find(({ parts }) => parseTask(collectUserText(parts))?.taskID === taskID) ?? users[0]
  }

  const addOpening = async (sessionID: string, messages: StoredMessage[]): Promise<Change | undefined> => {
    const found = await withDeadline(tasks.find(sessionID), TASK_DEADLINE_MS)
    const binding = found.kind === "done" ? found.value : undefined
    const anchor = binding && findAnchor(messages, binding)
    if (!binding || anchor?.info.role !== "user") return undefined
    const texts = anchor.parts.flatMap((part) =>
      part.type === "text" && noteTextOf(part) === undefined ? [part.text] : [],
    )
    const { text } = await deps.openings.find(binding, anchor.info.model, texts.join("\n"))
    return () => {
      withNote(messages, anchor.info.id, text)
      if (text.includes(READ_TOOL)) showTool(messages, READ_TOOL)
    }
  }

  return {
    userArrived: (sessionID, model, isNew) => {
      // Before 1.14 no summary passes through here, so that what comes next is a turn.
      see(sessionID, { isSummaryExpected: false })
      inBackground(sessionID, work.begin(sessionID, prepare(sessionID, model, isNew)))
    },

    modelUsed,

    toolUsed: (sessionID, use) => {
      activity.toolUsed(sessionID, use)
      return undefined
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

    remind: async (messages) => {
      const sessionID = messages[0]?.info.sessionID
      if (sessionID === undefined || isAwaitingSummary(messages)) return undefined
      const isSummaryExpected = seen.get(sessionID)?.isSummaryExpected === true
      const compaction = findCompletedCompaction(messages)
      if (isSummaryExpected) see(sessionID, { isSummaryExpected: false })
      else see(sessionID, { isTurnSeen: true, hasCompacted: false, isUncompacted: !compaction })
      if (!compaction) return isSummaryExpected ? undefined : addOpening(sessionID, messages)
      const asked = performance.now()
      const binding = await tasks.find(sessionID)
      if (!binding) return undefined
      const { note, delivered } = await work.begin(sessionID, recorder.record(binding, compaction))
      // OpenCode may exit right after the next turn without telling its plugins (1.2.15 does), and observers look now; but
      // the note must not come too late for its request.
      await withDeadline(delivered, Math.max(0, NOTE_READY_MS - (performance.now() - asked)))
      return () => withNote(messages, compaction.requestID, note)
    },

    observe: (event) => {
      switch (event.type) {
        case "message.part.updated": {
          const { part } = event.properties
          if (part.type === "compaction") preparations.begin(part.sessionID)
          if (part.type === "patch") activity.snapshotTaken(part.sessionID, part.files)
          return
        }
        case "todo.updated":
          todos.updated(event.properties.sessionID, event.properties.todos)
          return
        case "session.created":
          tasks.sessionCreated(event.properties.info.id, event.properties.info.parentID)
          return
        case "session.compacted":
          inBackground(
            event.properties.sessionID,
            work.begin(event.properties.sessionID, recordNewest(event.properties.sessionID)),
          )
          return
        case "session.idle":
          void journals.save(event.properties.sessionID)
          return
        case "session.deleted":
          inBackground(event.properties.info.id, forget(event.properties.info.id))
          return
        default:
          return
      }
    },

    stop: () => activity.stop(),
  }
}
