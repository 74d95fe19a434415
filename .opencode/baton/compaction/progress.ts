import { hostname } from "node:os"
import { createLruMap, type KeyedQueue } from "../host/async.ts"
import { describeError } from "../host/log.ts"
import { hasEnded, ownStart } from "../host/process-identity.ts"
import type { Parsed, Zod } from "../host/schema.ts"
import { redact } from "../host/secrets.ts"
import type { Sessions, StoredMessage } from "../host/sessions.ts"
import { createShownMessages } from "../host/shown-messages.ts"
import { createJsonStore, type StateFolder } from "../host/state.ts"
import { removeQuietly } from "../host/state-mark.ts"
import { cutTextStart } from "../host/text.ts"
import type { Outbox, OutboxEntry } from "../ledger/outbox-store.ts"
import type { Facts } from "../task/activity.ts"
import type { SessionTask, TaskRegistry } from "../task/registry.ts"
import { NO_WORDS, type TaskWords } from "../task/user-words.ts"
import { type FactsDeps, loadFacts } from "./context.ts"
import {
  handoffText,
  hasOwnHandoff,
  type SessionState,
  type SessionStates,
  withoutOwnHandoff,
} from "./session-state.ts"
import { handoffBody, renderHandoffSection, renderProgressSection } from "./texts.ts"

const FOLDER = "working"

const openWorkSchema = (z: Zod) =>
  z.object({
    version: z.literal(1),
    sessionID: z.string(),
    host: z.string(),
    pid: z.number(),
    taskID: z.string(),
    /** Start time of the process; "" where it is unknown. */
    startedAt: z.string(),
    /** Time of the turn's first tool use, ISO 8601. */
    since: z.string(),
    /** The turn was over; otherwise the process ended in the middle of it. */
    isIdle: z.boolean(),
  })

/**
 * Work of a session that is not recorded yet. The file is there from a turn's first tool use until the turn is over and all
 * is recorded, so that the next process finds what this one did not come to record.
 */
type OpenWork = Parsed<typeof openWorkSchema>

/** A crash loses at most what happened in this time. */
export const RECORD_EVERY_MS = 60_000

type ProgressDeps = FactsDeps & {
  state: StateFolder
  sessions: Pick<Sessions, "messages" | "message" | "info">
  sessionStates: Pick<SessionStates, "load" | "update" | "save">
  tasks: Pick<TaskRegistry, "onTask" | "cached" | "readStored">
  outbox: Pick<Outbox, "add" | "pending" | "status">
  /** One after the other with a session's compactions: an older state must not replace a newer handoff. */
  queue: KeyedQueue
  now: () => Date
}

/** The content of a record between compactions. */
type Left = {
  readonly facts: Facts
  readonly said: TaskWords
  readonly lastAnswer: string
  /** The user undid the session's newest compaction. */
  readonly isHandoffUndone: boolean
}

const UNDONE_REMARK = "The user undid the compaction, with what its summary told"

const hasSomething = ({ facts: { activity, todos }, said, lastAnswer }: Left): boolean =>
  activity.failures.length > 0 ||
  todos.length > 0 ||
  activity.files.some(({ changes }) => changes > 0) ||
  said.words.length > 0 ||
  lastAnswer !== ""

const NEWEST_MESSAGES = 10
const LAST_ANSWER_CHARACTERS = 800

/** The end of the newest answer, where the agent says what it did and what is open. */
const lastAnswerIn = (messages: readonly StoredMessage[]): string => {
  const answer = messages.findLast(
    ({ info, parts }) =>
      info.role === "assistant" && info.summary !== true && parts.some(({ type }) => type === "text"),
  )
  const text = (answer?.parts ?? []).flatMap((part) => (part.type === "text" ? [part.text] : [])).join("\n")
  const end = cutTextStart(text.trim(), LAST_ANSWER_CHARACTERS)
  return redact(end.length < text.trim().length ? `…${end}` : end)
}

/** Without the pid namespace, which is another one when a container starts again. */
const isOfThisHost = ({ host }: OpenWork): boolean => host === hostname()

const openStore = ({ state, log }: Pick<ProgressDeps, "state" | "log">) =>
  createJsonStore({ state, folder: FOLDER, schema: openWorkSchema, log })

/** A session is at work in the middle of a turn, in this process or another one on this host. */
export const createIsAtWork = (deps: Pick<ProgressDeps, "state" | "log">) => {
  const store = openStore(deps)
  return async (sessionID: string): Promise<boolean> => {
    const work = await store.read(sessionID)
    return work?.isIdle === false && isOfThisHost(work) && !hasEnded(work.pid, work.startedAt)
  }
}

export type Progress = ReturnType<typeof createProgress>

/** Records in the ledger what the program knows of a session's work, so that a crash without a compaction leaves it. */
export const createProgress = (deps: ProgressDeps) => {
  const { state, sessions, sessionStates, tasks, outbox, queue, log, now } = deps
  const store = openStore(deps)
  const shownMessages = createShownMessages(sessions)
  const open = new Map<string, OpenWork>()
  /** Sessions with changes that are not recorded, and the timer of their next record. */
  const unrecorded = new Map<string, { binding: SessionTask; isWork: boolean; timer: NodeJS.Timeout }>()
  const recording = new Map<string, Promise<void>>()
  /** Facts as last recorded, by session. */
  const recorded = createLruMap<{ text: string; at: number; taskID: string; section: string }>()
  let isStopped = false

  const pathOf = (sessionID: string): string => state.path(FOLDER, `${sessionID}.json`)

  /** On disk when it returns, since it is not flushed: OpenCode 1.2.15 ends `opencode run` right after `session.idle`. */
  const write = (work: OpenWork): void => {
    open.set(work.sessionID, work)
    void store.write(work.sessionID, work, { isDurable: false })
  }

  /** Synchronous for the same reason. */
  const close = (sessionID: string): void => {
    if (open.delete(sessionID)) removeQuietly(pathOf(sessionID))
  }

  const sectionOf = (
    { sessionID, taskID }: Pick<SessionTask, "sessionID" | "taskID">,
    sessionState: SessionState,
    left: Left,
    at: Date,
    crashedSince?: string,
  ): string => {
    const { said, lastAnswer } = left
    const { count: number, recorded: summaries, lastHandoff: last } = sessionState
    const isNewest = last !== undefined && last.summaryID === summaries.at(-1)
    const facts = { ...left.facts, crashedSince }
    if (number === 0 || !isNewest || handoffText(sessionState, taskID) === undefined)
      return renderProgressSection(sessionID, { at, said, facts, lastAnswer })
    const compaction = { summaryID: last.summaryID, summary: left.isHandoffUndone ? "" : last.text }
    const verdict = { saysLess: false, ...(left.isHandoffUndone ? { remark: UNDONE_REMARK } : {}) }
    return renderHandoffSection({ number, sessionID }, { at, compaction, verdict, said, facts, earlier: undefined })
  }

  const readLeft = async (
    { sessionID, taskID }: Pick<SessionTask, "sessionID" | "taskID">,
    sessionState: SessionState,
  ): Promise<Left> => {
    const [facts, newest, stored] = await Promise.all([
      loadFacts(deps, sessionID, sessionState),
      sessions.messages(sessionID, NEWEST_MESSAGES),
      tasks.readStored(sessionID),
    ])
    const said = stored?.taskID === taskID ? stored.said : NO_WORDS
    const lastAnswer = newest.kind === "ok" ? lastAnswerIn(newest.value.messages) : ""
    return { facts, said, lastAnswer, isHandoffUndone: false }
  }

  const isHandoffUndone = async (sessionID: string, sessionState: SessionState): Promise<boolean> => {
    const { summaryID } = sessionState.lastHandoff ?? {}
    if (summaryID === undefined || !hasOwnHandoff(sessionState)) return false
    return (await shownMessages(sessionID, [summaryID]))?.has(summaryID) === false
  }

  type Record = { readonly crashedSince?: string | undefined; readonly isLast?: boolean; readonly isUndone?: boolean }
  /**
   * @param options `isLast`: no other may follow it; `isUndone`: what was recorded before must go, even where nothing is left
   * @returns false where an earlier record of the session waits for the ledger, and this one for that
   */
  const record = async (
    binding: Pick<SessionTask, "sessionID" | "taskID">,
    { crashedSince, isLast = false, isUndone = false }: Record = {},
  ): Promise<boolean> => {
    const { sessionID, taskID } = binding
    const sessionState = await sessionStates.load(sessionID)
    const read = await readLeft(binding, sessionState)
    // The answer to an undone message is undone, too.
    const left = isUndone
      ? { ...read, lastAnswer: "", isHandoffUndone: await isHandoffUndone(sessionID, sessionState) }
      : read
    const text = JSON.stringify(left)
    if ((!isUndone && !hasSomething(left)) || recorded.get(sessionID)?.text === text) return true
    const waiting = await outbox.pending(taskID)
    const { parked } = await outbox.status()
    const isOwn = (entry: OutboxEntry | undefined): entry is Extract<OutboxEntry, { kind: "handoff" }> =>
      entry?.kind === "handoff" && entry.sessionID === sessionID && entry.taskID === taskID
    const { specification, activeAt = "" } = sessionState
    // Not before what was recorded in that turn, and not after what others recorded since.
    const at = crashedSince === undefined ? now() : new Date(activeAt > crashedSince ? activeAt : crashedSince)
    const section = sectionOf(binding, sessionState, left, at, crashedSince)
    const newest = waiting?.findLast(isOwn)
    if (newest && handoffBody(newest.section) === handoffBody(section)) return true
    // While the ledger cannot be reached, or does not know the task, one record of a session is enough.
    if (!isUndone && parked.some(({ record: parkedRecord }) => isOwn(parkedRecord?.entry))) return true
    if (!waiting || (newest && !isUndone && !isLast)) return false
    recorded.set(sessionID, { text, at: performance.now(), taskID, section })
    await outbox.add({
      kind: "handoff",
      taskID,
      sessionID,
      section,
      ...(specification?.taskID === taskID ? { specification: specification.text } : {}),
    })
    log.debug("work in progress is recorded", { sessionID, taskID })
    return true
  }

  const closeIfRecorded = (sessionID: string): void => {
    if (open.get(sessionID)?.isIdle && !unrecorded.has(sessionID) && !recording.has(sessionID)) close(sessionID)
  }

  const recordLater = (binding: SessionTask, isWork: boolean): void => {
    const { sessionID } = binding
    const timer = setTimeout(() => void recordNow(sessionID), RECORD_EVERY_MS)
    timer.unref()
    unrecorded.set(sessionID, { binding, isWork, timer })
  }

  const recordNow = (sessionID: string): Promise<void> => {
    const change = unrecorded.get(sessionID)
    if (!change) return recording.get(sessionID) ?? Promise.resolve()
    clearTimeout(change.timer)
    unrecorded.delete(sessionID)
    const { binding, isWork } = change
    const work = queue
      .add(sessionID, async () => {
        if (await record(binding, { isLast: isStopped })) return
        // The process may have come to its end meanwhile.
        if (isStopped) await record(binding, { isLast: true })
        else if (!unrecorded.has(sessionID)) recordLater(binding, isWork)
      })
      .catch((error: unknown) =>
        log.warn("work in progress is not recorded", { sessionID, error: describeError(error) }),
      )
      .then(() => {
        if (recording.get(sessionID) === work) recording.delete(sessionID)
        closeIfRecorded(sessionID)
      })
    recording.set(sessionID, work)
    return work
  }

  const recoverOne = async (work: OpenWork): Promise<void> => {
    const { sessionID, since, isIdle } = work
    const binding = await tasks.readStored(sessionID)
    if (binding) {
      // The session may have taken another task since.
      const { taskID } = work
      if (!(await record({ sessionID, taskID }, { crashedSince: isIdle ? undefined : since, isLast: true }))) return
      if (!isIdle) {
        log.warn("a session ended in the middle of a turn", { sessionID, taskID, since })
        const message = `Session ${sessionID} ended in the middle of the turn of ${since}`
        await outbox.add({ kind: "log", taskID, message })
      }
    }
    await store.remove(sessionID)
  }

  let recovering: Promise<void> | undefined
  const recoverAll = async (): Promise<void> => {
    for (const sessionID of await store.keys()) {
      const work = await store.read(sessionID)
      if (work && isOfThisHost(work) && hasEnded(work.pid, work.startedAt)) await recoverOne(work)
    }
  }

  // Records the work on the earlier task, before the first tool is used for the new one.
  tasks.onTask(({ sessionID, taskID }) => {
    if ((unrecorded.get(sessionID)?.binding.taskID ?? taskID) !== taskID) void recordNow(sessionID)
  })

  return {
    /** A tool was used or a file changed in a session with a task, or (no work) its user said something. */
    changed: (binding: SessionTask, { isWork = true } = {}): void => {
      const { sessionID, taskID } = binding
      // A subagent's work is its parent's.
      if (binding.origin === "parent") return
      const work = open.get(sessionID)
      if (work?.isIdle !== false || work.taskID !== taskID)
        write({
          version: 1,
          sessionID,
          taskID,
          host: hostname(),
          pid: process.pid,
          startedAt: ownStart(),
          since: now().toISOString(),
          isIdle: false,
        })
      const known = unrecorded.get(sessionID)
      if (known) return void unrecorded.set(sessionID, { ...known, isWork: known.isWork || isWork })
      recordLater(binding, isWork)
    },
    /**
     * The user undid what this session was told on the task.
     *
     * @param options `isFinal`: a compaction that is undone does not come back
     */
    undone: (binding: Pick<SessionTask, "sessionID" | "taskID">, { isFinal = false } = {}): Promise<void> =>
      queue.add(binding.sessionID, async () => {
        const { sessionID } = binding
        await record(binding, { isUndone: true })
        if (!isFinal || !(await isHandoffUndone(sessionID, await sessionStates.load(sessionID)))) return
        log.info("a compaction that the user undid is no handoff any more", { sessionID })
        await sessionStates.update(sessionID, withoutOwnHandoff)
        await sessionStates.save(sessionID)
      }),
    /** The turn is over, which OpenCode reports more than once. */
    idle: (sessionID: string): void => {
      const work = open.get(sessionID)
      if (work?.isIdle === false) write({ ...work, isIdle: true })
      const last = recorded.get(sessionID)
      // Words alone wait for the timer, the end of the process, or the next session on the task.
      const change = unrecorded.get(sessionID)
      const isOther = last?.taskID !== change?.binding.taskID
      const isDue = !last || isOther || performance.now() - last.at >= RECORD_EVERY_MS
      if (isDue && change?.isWork !== false) void recordNow(sessionID)
      closeIfRecorded(sessionID)
    },
    /** Records what other sessions of this process left on the task, for a session that begins to work on it. */
    recordOthers: async ({ sessionID, taskID }: Pick<SessionTask, "sessionID" | "taskID">): Promise<void> => {
      const others = [...unrecorded.values()].filter(
        ({ binding }) => binding.taskID === taskID && binding.sessionID !== sessionID,
      )
      await Promise.all(others.map(({ binding }) => recordNow(binding.sessionID)))
    },
    /** The handoffs that this process has recorded between compactions, the newest of each session. */
    recordedOn: (taskID: string): string[] =>
      [...recorded.values()].flatMap((one) => (one.taskID === taskID ? [one.section] : [])),
    /** Records what sessions left whose process ended in the middle of a turn. */
    recover: (): Promise<void> => {
      recovering ??= recoverAll().finally(() => {
        recovering = undefined
      })
      return recovering
    },
    forget: (sessionID: string): void => {
      close(sessionID)
      clearTimeout(unrecorded.get(sessionID)?.timer)
      unrecorded.delete(sessionID)
      recorded.delete(sessionID)
    },
    /** Records what is not recorded yet. */
    stop: async (): Promise<void> => {
      isStopped = true
      for (const work of open.values()) if (!work.isIdle) write({ ...work, isIdle: true })
      await Promise.all([...unrecorded.keys(), ...recording.keys()].map(recordNow))
    },
  }
}
