import type { Log } from "../host/log.ts"
import { type CompletedCompaction, summaryLine } from "../host/messages.ts"
import type { Sessions } from "../host/sessions.ts"
import type { Notices } from "../host/tui.ts"
import { type HandoffTitle, parseHandoffTitle, parseNextStep } from "../ledger/description.ts"
import type { Outbox } from "../ledger/outbox-store.ts"
import type { Facts } from "../task/activity.ts"
import type { SessionTask } from "../task/registry.ts"
import { createBudget, UNKNOWN_CONTEXT_TOKENS } from "./budget.ts"
import type { CompactionContext } from "./context.ts"
import {
  handoffText,
  hasOwnHandoff,
  originalSpecification,
  type ResumeNote,
  type SessionState,
  type SessionStates,
  withKnown,
  withRecorded,
  withResumeNote,
} from "./session-state.ts"
import { renderHandoffSection, renderNote, taskInLedger } from "./texts.ts"

/** `delivered` resolves when the record reached the ledger or was left to the outbox. */
type Recorded = { note: string; delivered: Promise<void> }

type RecorderDeps = {
  sessionStates: SessionStates
  sessions: Pick<Sessions, "info">
  outbox: Pick<Outbox, "add" | "addIfMissing" | "pending" | "flush">
  loadContext: (binding: SessionTask, sessionState: SessionState) => Promise<CompactionContext>
  notices: Notices
  log: Log
  now: () => Date
}

/** A delivery that takes longer is left to the outbox. */
const DELIVERY_WAIT_MS = 1_000
const NOTHING_TO_DELIVER = Promise.resolve()

const counted = (count: number, one: string, several: string): string => `${count} ${count === 1 ? one : several}`

const logMessage = (
  { number, sessionID }: Pick<HandoffTitle, "number" | "sessionID">,
  { summary }: CompletedCompaction,
  { activity }: Facts,
): string => {
  const session = `(session ${sessionID})`
  if (summary !== "") return `Compaction ${number}: ${summaryLine(summary)} ${session}`
  const changed = activity.files.filter((file) => file.changes > 0).length
  const files = counted(changed, "file changed", "files changed")
  const failures = counted(activity.failures.length, "failing command", "failing commands")
  return `Compaction ${number}: the summary was empty; known by program: ${files}, ${failures} ${session}`
}

const noticeText = (summary: string): string => {
  const step = parseNextStep(summary)
  if (step !== undefined) return `next: ${step}`
  return summaryLine(summary) || "the summary was empty; the task is kept"
}

export const createRecorder = ({ sessionStates, sessions, outbox, loadContext, notices, log, now }: RecorderDeps) => {
  /** Records until they are delivered, so that a second report of a compaction waits for the delivery, too. */
  const running = new Map<string, Promise<Recorded>>()

  /**
   * Takes the count from the session's newest handoff where the stored state lacks it: it never reached the disk, is damaged,
   * or another process went on with the session.
   */
  const recoverCount = async (
    { sessionID, taskID }: SessionTask,
    sessionState: SessionState,
    sections: readonly string[],
  ): Promise<SessionState> => {
    const newest = sections
      .flatMap((section) => parseHandoffTitle(section) ?? [])
      .findLast((title) => title.sessionID === sessionID && title.number > 0)
    if (!newest || sessionState.recorded.includes(newest.summaryID)) return sessionState
    log.info("the count of compactions is taken from the newest handoff", { taskID, ...newest })
    return sessionStates.update(sessionID, (current) => ({
      ...current,
      count: Math.max(current.count, newest.number),
      recorded: [...current.recorded, newest.summaryID],
    }))
  }

  /** A fork starts with copies of its original's messages; their summaries are recorded already. */
  const isForkedCopy = async (
    { sessionID }: SessionTask,
    { createdAt, summaryID }: CompletedCompaction,
  ): Promise<boolean> => {
    const session = await sessions.info(sessionID)
    const sessionCreatedAt = session.kind === "ok" ? session.value.time?.created : undefined
    if (sessionCreatedAt === undefined || createdAt >= sessionCreatedAt) return false
    log.info("a compaction from before the session was forked is not recorded again", { sessionID, summaryID })
    return true
  }

  const recordOnce = async (binding: SessionTask, compaction: CompletedCompaction): Promise<Recorded> => {
    const { sessionID, taskID, role } = binding
    const { requestID } = compaction
    const stored = await sessionStates.load(sessionID)
    const { note: known } = stored
    const isNoted = known?.requestID === requestID && known.taskID === taskID && known.role === role
    if (isNoted && stored.recorded.includes(compaction.summaryID))
      return { note: known.text, delivered: NOTHING_TO_DELIVER }
    // Read before the ledger, so that a record delivered meanwhile is in one of the two.
    const waiting = await outbox.pending(taskID)
    const context = await loadContext(binding, stored)
    const inOutbox = waiting?.flatMap((entry) => (entry.kind === "handoff" ? entry.section : [])) ?? []
    const sessionState = await recoverCount(binding, stored, [...context.handoffs, ...inOutbox])
    const isRecorded = sessionState.recorded.includes(compaction.summaryID) || (await isForkedCopy(binding, compaction))
    const number = isRecorded ? sessionState.count : sessionState.count + 1
    const { identity } = context
    const { lastHandoff } = sessionState
    const facts = { ...context.facts, compactions: number }
    const text = renderNote({
      identity,
      facts,
      number,
      summary: compaction.summary,
      earlierHandoff: lastHandoff?.text,
      isInherited: !hasOwnHandoff(sessionState),
      budget: createBudget(sessionState.contextTokens ?? UNKNOWN_CONTEXT_TOKENS),
    })
    const note: ResumeNote = { requestID, taskID, role, text, isComplete: identity.ledger !== undefined }
    if (isRecorded) {
      await sessionStates.update(sessionID, (current) =>
        withResumeNote(withKnown(current, compaction), compaction, note),
      )
      return { note: text, delivered: NOTHING_TO_DELIVER }
    }
    const specification = originalSpecification(sessionState, taskID, taskInLedger(identity)?.specification)
    const wasInterrupted = sessionState.recording === compaction.summaryID
    await sessionStates.update(sessionID, (current) => ({ ...current, recording: compaction.summaryID }))
    await sessionStates.save(sessionID)
    // Another process may have recorded it, and ledger or outbox cannot be asked now.
    const mayExist = (identity.ledger === undefined || waiting === undefined) && !context.wasPrefetched
    const add = wasInterrupted || mayExist ? outbox.addIfMissing : outbox.add
    await add({ kind: "log", taskID, message: logMessage({ number, sessionID }, compaction, facts) })
    await add({
      kind: "handoff",
      taskID,
      sessionID,
      section: renderHandoffSection({ number, sessionID }, now(), compaction, facts, handoffText(sessionState, taskID)),
      ...(specification ? { specification: specification.text } : {}),
    })
    await sessionStates.update(sessionID, (current) => withRecorded({ ...current, specification }, compaction, note))
    await sessionStates.save(sessionID)
    notices({ title: `compaction ${number} recorded`, message: `${taskID} · ${noticeText(compaction.summary)}` })
    log.info("compaction recorded", { sessionID, taskID, number, empty: compaction.summary === "" })
    return { note: text, delivered: outbox.flush(DELIVERY_WAIT_MS) }
  }

  return {
    /** Records a compaction once, however often it is reported. On disk when this resolves. */
    record: (binding: SessionTask, compaction: CompletedCompaction): Promise<Recorded> => {
      const key = [compaction.summaryID, binding.taskID, binding.role].join("\n")
      const known = running.get(key)
      if (known) return known
      const started = recordOnce(binding, compaction)
      running.set(key, started)
      const forget = (): void => void running.delete(key)
      started.then(({ delivered }) => delivered).then(forget, forget)
      return started
    },
  }
}
