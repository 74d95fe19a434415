import type { Event, UserMessage } from "@opencode-ai/sdk"
import { createLruMap, type KeyedQueue, type LruMap, lazy, withDeadline } from "../host/async.ts"
import type { Change } from "../host/guard.ts"
import { describeError, type Log } from "../host/log.ts"
import {
  appendNote,
  type CompletedCompaction,
  collectUserText,
  enableTool,
  isSummaryRequest,
  latestCompaction,
  noteTextOf,
  WRITING_TOOLS,
} from "../host/messages.ts"
import type { CompactingOutput } from "../host/port.ts"
import type { ModelName, StoredMessage } from "../host/sessions.ts"
import { type Activity, afterSnapshot, afterToolUse, type ToolUse } from "../task/activity.ts"
import { namesTask } from "../task/parse.ts"
import type { SessionTask, TaskRegistry } from "../task/registry.ts"
import type { TaskClaims } from "./claims.ts"
import type { Compaction } from "./compaction.ts"
import type { Progress } from "./progress.ts"
import type { RunFactsOf } from "./run-facts.ts"
import { patchMemo, type SessionMemo } from "./session-memo.ts"
import { hasOwnHandoff, type SessionStates, withoutIncompleteNote } from "./session-state.ts"
import { REQUEST_DEADLINE_MS, type TaskNotes } from "./task-notes.ts"

/** Tool calls come in bursts: the state is written once after each burst. */
const SAVE_DELAY_MS = 500

/** Tracks the activity of sessions with a task. @param root folder that file paths in the facts are relative to */
const createActivityTracker = ({
  tasks,
  sessionStates,
  progress,
  root,
  now,
}: {
  tasks: Pick<TaskRegistry, "cached" | "find">
  sessionStates: SessionStates
  progress: Pick<Progress, "changed">
  root: string
  now: () => Date
}) => {
  const saving = new Map<string, ReturnType<typeof setTimeout>>()

  const saveSoon = (sessionID: string): void => {
    if (saving.has(sessionID)) return
    const timer = setTimeout(() => {
      saving.delete(sessionID)
      void sessionStates.save(sessionID, { isDurable: false })
    }, SAVE_DELAY_MS)
    timer.unref()
    saving.set(sessionID, timer)
  }

  const update = async (sessionID: string, change: (activity: Activity) => Activity): Promise<void> => {
    // The search for a resumed session's task may still be running.
    const binding = tasks.cached(sessionID) ?? (await tasks.find(sessionID))
    if (!binding) return
    progress.changed(binding)
    void sessionStates.update(sessionID, (sessionState) => ({
      ...sessionState,
      activeAt: now().toISOString(),
      activity: change(sessionState.activity),
    }))
    saveSoon(sessionID)
  }

  return {
    toolUsed: (sessionID: string, use: ToolUse): void =>
      void update(sessionID, (activity) => afterToolUse(activity, use, root)),
    /** @param files paths that changed between a step's snapshots */
    snapshotTaken: (sessionID: string, files: readonly string[]): void =>
      void update(sessionID, (activity) => afterSnapshot(activity, files, root)),
    forget: (sessionID: string): void => {
      clearTimeout(saving.get(sessionID))
      saving.delete(sessionID)
    },
    /** Stops the timers; unsaved activity stays in memory. */
    stop: (): void => {
      for (const timer of saving.values()) clearTimeout(timer)
      saving.clear()
    },
  }
}

/** Asks for the agent of a user's message. */
type MayUseShell = (message: UserMessage) => Promise<boolean>

type SessionTrackerDeps = {
  tasks: TaskRegistry
  sessionStates: SessionStates
  taskNotes: TaskNotes
  progress: Progress
  /** Runs a session's work in order; a deleted session's state is removed after the last. */
  queue: KeyedQueue
  /** Loads the code for compactions, at the first one. */
  loadCompaction: (memos: LruMap<SessionMemo>) => Promise<Compaction>
  /** Loads the code for claims, at the first tool of a session with a task. */
  loadClaims: () => Promise<TaskClaims>
  facts: RunFactsOf
  /** The sessions have no person at them: `opencode run`. */
  isUnattended: boolean
  /** The worktree's top folder, or the project's where there is no git. */
  root: string
  log: Log
  now: () => Date
}

const TASK_DEADLINE_MS = 500

/** The tool that reads an earlier session. */
const READ_TOOL = "read_session"

/** Follows the sessions turn by turn: their task, their activity, their compactions. */
export const createSessionTracker = (deps: SessionTrackerDeps) => {
  const { tasks, sessionStates, taskNotes, progress, queue, loadCompaction, loadClaims, root, log, now } = deps
  const { facts, isUnattended } = deps
  const memos = createLruMap<SessionMemo>()
  const activity = createActivityTracker({ tasks, sessionStates, progress, root, now })
  const compaction = lazy(() => loadCompaction(memos))
  const claims = lazy(loadClaims)
  /** Once they are loaded: the end of a run waits for nothing. */
  let loadedClaims: TaskClaims | undefined
  /** The unattended root sessions whose run goes on. */
  const running = new Map<string, SessionTask>()

  const runBegins = async (binding: SessionTask): Promise<void> => {
    running.set(binding.sessionID, binding)
    loadedClaims = await claims()
  }

  /** Claims with a request that was made: the first shows the task as it was before. */
  const claimRun = (sessionID: string): void => {
    const binding = running.get(sessionID)
    if (binding && loadedClaims) inBackground(sessionID, loadedClaims.runBegins(binding))
  }

  /** OpenCode reports the end of a turn more than once. */
  const runEnds = (sessionID: string): void => {
    const binding = running.get(sessionID)
    running.delete(sessionID)
    if (!binding) return
    if (loadedClaims) loadedClaims.runEnds(binding)
    else log.warn("the run is not ended: its claim was not loaded yet", { sessionID, taskID: binding.taskID })
  }

  /** Runs behind the session's other work. Resolves before the record is written. */
  const record = (binding: SessionTask, completed: CompletedCompaction, hasShell: boolean) =>
    new Promise<Awaited<ReturnType<Compaction["record"]>>>((resolve, reject) => {
      const written = queue.add(binding.sessionID, async () => {
        const noted = await (await compaction()).record(binding, completed, hasShell)
        resolve(noted)
        // What is delivered meanwhile holds up no later note.
        await noted.saved
      })
      written.catch(reject)
      inBackground(binding.sessionID, written)
    })

  const inBackground = (sessionID: string, begun: Promise<unknown>): void => {
    begun.catch((error: unknown) => log.error("background work failed", { sessionID, error: describeError(error) }))
  }

  const forget = async (sessionID: string): Promise<void> => {
    // A record in progress would store the session again after it was forgotten.
    await queue.idle(sessionID)
    activity.forget(sessionID)
    progress.forget(sessionID)
    memos.delete(sessionID)
    taskNotes.forget(sessionID)
    running.delete(sessionID)
    ;(await compaction.current)?.forget(sessionID)
    await (await claims.current)?.forget(sessionID)
    facts.forget(sessionID)
    await tasks.forget(sessionID)
    await sessionStates.forget(sessionID)
    log.debug("session deleted: its state is forgotten", { sessionID })
  }

  const beginTaskNote = async (sessionID: string, model: ModelName): Promise<void> => {
    const binding = await tasks.find(sessionID)
    if (!binding) return
    await sessionStates.update(sessionID, withoutIncompleteNote)
    // Side by side: the request waits for the ledger's program.
    await Promise.all([taskNotes.begin(binding, model), progress.recover()])
  }

  /**
   * The user's message that gave the session its task, else the first. It is the same one in each request, since a changed
   * message breaks the provider's cache from there on.
   */
  const findAnchor = (
    messages: readonly StoredMessage[],
    { taskID, messageID }: SessionTask,
  ): StoredMessage | undefined => {
    const users = messages.filter(({ info }) => info.role === "user")
    return (
      users.find(({ info }) => info.id === messageID) ??
      users.find(({ parts }) => namesTask(collectUserText(parts), taskID)) ??
      users[0]
    )
  }

  const addOpening = async (
    sessionID: string,
    messages: StoredMessage[],
    { hasShell, askedAt }: { hasShell: boolean; askedAt: number },
  ): Promise<Change | undefined> => {
    const begun = memos.get(sessionID)?.noteBegun
    if (begun) await withDeadline(begun, TASK_DEADLINE_MS)
    const found = await withDeadline(tasks.find(sessionID), TASK_DEADLINE_MS)
    const binding = found.kind === "done" ? found.value : undefined
    const anchor = binding && findAnchor(messages, binding)
    if (!binding || anchor?.info.role !== "user") return undefined
    const texts = anchor.parts.flatMap((part) =>
      part.type === "text" && noteTextOf(part) === undefined ? [part.text] : [],
    )
    const { text } = await taskNotes.find(binding, {
      info: anchor.info,
      text: texts.join("\n"),
      hasShell,
      askedAt,
    })
    return () => {
      appendNote(messages, anchor.info.id, text)
      if (text.includes(READ_TOOL)) enableTool(messages, READ_TOOL)
    }
  }

  const recordAndMakeNote = async (
    sessionID: string,
    messages: StoredMessage[],
    mayUseShell: MayUseShell,
  ): Promise<Change | undefined> => {
    const askedAt = performance.now()
    const isSummaryExpected = memos.get(sessionID)?.isSummaryExpected === true
    const completed = latestCompaction(messages)
    if (isSummaryExpected) patchMemo(memos, sessionID, { isSummaryExpected: false })
    else patchMemo(memos, sessionID, { isTurnSeen: true, isUncompacted: !completed })
    if (!completed && isSummaryExpected) return undefined
    const known = tasks.cached(sessionID)
    if (!completed && known && hasOwnHandoff(await sessionStates.load(sessionID)))
      inBackground(sessionID, progress.undone(known, { isFinal: true }))
    const user = messages.findLast(({ info }) => info.role === "user")?.info
    const hasShell = tasks.cached(sessionID) && user?.role === "user" ? await mayUseShell(user) : true
    if (!completed) return addOpening(sessionID, messages, { hasShell, askedAt })
    const binding = await tasks.find(sessionID)
    if (!binding) return undefined
    const { note, delivered } = await record(binding, completed, hasShell)
    // 1.2.15 may exit right after this turn without telling its plugins, and observers look now; but the note must not be
    // late for its request.
    await withDeadline(delivered, Math.max(0, REQUEST_DEADLINE_MS - (performance.now() - askedAt)))
    // A task that was named after the compaction stands beside its message, as in a first request.
    const isNamedSince = binding.origin === "message" && Date.parse(binding.boundAt) > completed.createdAt
    if (isNamedSince) return addOpening(sessionID, messages, { hasShell, askedAt })
    return () => appendNote(messages, completed.requestID, note)
  }

  return {
    /** A user's message arrived: reading the task for its request starts now. */
    userArrived: (sessionID: string, model: ModelName): void => {
      const known = tasks.cached(sessionID)
      facts.follow(sessionID)
      // The words of a session that is killed right now must not be lost.
      if (known) progress.changed(known, { isWork: false })
      const noteBegun = queue.add(sessionID, () => beginTaskNote(sessionID, model))
      inBackground(sessionID, noteBegun)
      if (known && isUnattended && known.origin !== "parent") inBackground(sessionID, runBegins(known))
      // Before 1.14 the transform hook sees no summary request: the next call is a turn.
      patchMemo(memos, sessionID, { isSummaryExpected: false, noteBegun })
      if (claims.current)
        inBackground(
          sessionID,
          claims.current.then((loaded) => loaded?.userArrived(sessionID)),
        )
    },

    modelUsed: (sessionID: string, contextTokens: number): void => {
      if (tasks.cached(sessionID))
        void sessionStates.update(sessionID, (sessionState) => ({ ...sessionState, contextTokens }))
    },

    /** @returns the reason to refuse the tool, or nothing */
    toolStarting: async (sessionID: string, tool: string): Promise<string | undefined> => {
      const judge = async (binding: SessionTask | undefined): Promise<string | undefined> =>
        binding && (await claims()).toolStarting(binding, tool)
      facts.toolStarted(sessionID)
      const known = tasks.cached(sessionID)
      if (known && WRITING_TOOLS.has(tool)) return judge(known)
      // No tool waits for a search of the task; only one that changes files waits for the claim.
      inBackground(sessionID, tasks.find(sessionID).then(judge))
      return undefined
    },

    toolUsed: (sessionID: string, use: ToolUse): undefined => {
      activity.toolUsed(sessionID, use)
      return undefined
    },

    /** @returns the change to the compacting hook's output, or nothing for a session without a task */
    preparePrompt: async (sessionID: string, output: CompactingOutput): Promise<Change | undefined> =>
      (await compaction()).preparePrompt(sessionID, output),

    /** @returns the change that puts the note beside the newest summary, or the task beside the message that names it */
    prepareNote: async (messages: StoredMessage[], mayUseShell: MayUseShell): Promise<Change | undefined> => {
      const sessionID = messages[0]?.info.sessionID
      if (sessionID === undefined || isSummaryRequest(messages)) return undefined
      try {
        return await recordAndMakeNote(sessionID, messages, mayUseShell)
      } finally {
        claimRun(sessionID)
      }
    },

    observe: (event: Event): void => {
      facts.observe(event)
      switch (event.type) {
        case "message.part.updated": {
          const { part } = event.properties
          const { sessionID } = part
          if (part.type === "compaction")
            inBackground(
              sessionID,
              compaction().then((loaded) => loaded.begin(sessionID)),
            )
          if (part.type === "patch") activity.snapshotTaken(sessionID, part.files)
          return
        }
        case "session.compacted": {
          const { sessionID } = event.properties
          // Read before it is queued: another may follow while an earlier one is being recorded.
          const found = compaction().then((loaded) => loaded.findNewest(sessionID))
          found.catch(() => {})
          inBackground(
            sessionID,
            queue.add(sessionID, async () => (await found)()),
          )
          return
        }
        case "session.idle":
          void sessionStates.save(event.properties.sessionID, { isDurable: false })
          progress.idle(event.properties.sessionID)
          // The last, since it takes longest.
          runEnds(event.properties.sessionID)
          return
        case "session.deleted":
          inBackground(event.properties.info.id, forget(event.properties.info.id))
          return
        default:
          return
      }
    },

    /** Ends the session's claim on its task. */
    releaseClaim: async (sessionID: string): Promise<void> => (await claims.current)?.forget(sessionID),

    stop: async (): Promise<void> => {
      activity.stop()
      await Promise.all([progress.stop(), claims.current?.then((loaded) => loaded?.stop())])
    },
  }
}
