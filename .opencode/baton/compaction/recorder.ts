import { describeError, type Log } from "../host/log.ts"
import { type CompletedCompaction, summaryLine } from "../host/messages.ts"
import { redactKeys } from "../host/secrets.ts"
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
import { judgeBeside, type SummaryVerdict } from "./summary.ts"
import { renderHandoffSection, renderNote, type TaskIdentity, taskInLedger } from "./texts.ts"

/** `saved` resolves when the outbox has the record; `delivered` when the ledger has it, too, or it is left to the outbox. */
type NoteAndDelivery = { note: string; saved: Promise<void>; delivered: Promise<void> }

type RecorderDeps = {
  sessionStates: SessionStates
  sessions: Pick<Sessions, "info">
  outbox: Pick<Outbox, "add" | "pending" | "flush">
  loadContext: (binding: SessionTask, sessionState: SessionState) => Promise<CompactionContext>
  /** The prompt that a summary is made by. */
  instructions: (sessionID: string) => string
  notices: Notices
  log: Log
  now: () => Date
}

/** The next thing to do about a compaction that was reported. */
type Decision =
  /** It is recorded, and this is its note. */
  | { kind: "reuse"; note: string }
  /** `note` alone where its record is there, or is the original's of a fork. `number`: of the compaction. */
  | { kind: "note" | "record"; number: number; sessionState: SessionState; context: CompactionContext }

/** A note with all that it was made of. */
type NoteMaterial = {
  sessionState: SessionState
  identity: TaskIdentity
  facts: Facts
  verdict: SummaryVerdict
  note: ResumeNote
}

/** A delivery that takes longer is left to the outbox. */
const DELIVERY_WAIT_MS = 1_000
/** The same while the disk refuses records: what the process does not deliver is lost with it. */
const UNSAVED_WAIT_MS = 10_000
const NOTHING_TO_RECORD = { saved: Promise.resolve(), delivered: Promise.resolve() }

const counted = (count: number, one: string, several: string): string => `${count} ${count === 1 ? one : several}`

const logMessage = (
  { number, sessionID }: Pick<HandoffTitle, "number" | "sessionID">,
  { summary }: CompletedCompaction,
  { saysLess, remark = "" }: SummaryVerdict,
  { activity }: Facts,
): string => {
  const session = `(session ${sessionID})`
  const remarks = saysLess ? ` [${remark}]` : ""
  if (summary !== "") return `Compaction ${number}: ${summaryLine(summary)}${remarks} ${session}`
  const changed = activity.files.filter((file) => file.changes > 0).length
  const files = counted(changed, "file changed", "files changed")
  const failures = counted(activity.failures.length, "failing command", "failing commands")
  return `Compaction ${number}: the summary was empty; known by program: ${files}, ${failures} ${session}`
}

const noticeText = (summary: string, { saysLess }: SummaryVerdict): string => {
  if (saysLess && summary !== "") return "the summary says less than the one before it, which is kept"
  const step = parseNextStep(summary)
  if (step !== undefined) return `next: ${step}`
  return summaryLine(summary) || "the summary was empty; the task is kept"
}

/** The note of this compaction, if it was made for the same task, role and kind of agent. */
const noteOf = (
  { note }: SessionState,
  { taskID, role }: SessionTask,
  { requestID }: CompletedCompaction,
  hasShell: boolean,
): ResumeNote | undefined =>
  note?.requestID === requestID && note.taskID === taskID && note.role === role && note.hasShell === hasShell
    ? note
    : undefined

export const createRecorder = (deps: RecorderDeps) => {
  const { sessionStates, sessions, outbox, loadContext, instructions, notices, log, now } = deps
  /** Notes until their records are delivered, so that a second report of a compaction waits for the delivery, too. */
  const running = new Map<string, Promise<NoteAndDelivery>>()

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

  const decide = async (
    binding: SessionTask,
    compaction: CompletedCompaction,
    hasShell: boolean,
  ): Promise<Decision> => {
    const { sessionID, taskID } = binding
    const { summaryID } = compaction
    const stored = await sessionStates.load(sessionID)
    const note = noteOf(stored, binding, compaction, hasShell)
    if (note && stored.recorded.includes(summaryID)) return { kind: "reuse", note: note.text }
    // Read before the ledger, so that a record delivered meanwhile is in one of the two.
    const waiting = (await outbox.pending(taskID)) ?? []
    const context = await loadContext(binding, stored)
    const inOutbox = waiting.flatMap((entry) => (entry.kind === "handoff" ? entry.section : []))
    const sessionState = await recoverCount(binding, stored, [...context.handoffs, ...inOutbox])
    const { count, recorded } = sessionState
    const isRecorded = recorded.includes(summaryID) || (await isForkedCopy(binding, compaction))
    return { kind: isRecorded ? "note" : "record", number: isRecorded ? count : count + 1, sessionState, context }
  }

  /** Writes a compaction to log and description, through the outbox. */
  const write = async (
    { sessionID, taskID, said }: SessionTask,
    compaction: CompletedCompaction,
    { sessionState, identity, facts, verdict, note }: NoteMaterial,
  ): Promise<void> => {
    const number = facts.compactions
    const specification = originalSpecification(sessionState, taskID, taskInLedger(identity)?.specification.untrusted)
    const earlier = handoffText(sessionState, taskID)
    await outbox.add({ kind: "log", taskID, message: logMessage({ number, sessionID }, compaction, verdict, facts) })
    await outbox.add({
      kind: "handoff",
      taskID,
      sessionID,
      section: renderHandoffSection({ number, sessionID }, { at: now(), compaction, verdict, said, facts, earlier }),
      ...(specification ? { specification: specification.text } : {}),
    })
    const recorded = { ...compaction, saysLess: verdict.saysLess }
    await sessionStates.update(sessionID, (current) => withRecorded({ ...current, specification }, recorded, note))
    await sessionStates.save(sessionID)
    notices({
      title: `compaction ${number} recorded`,
      message: `${taskID} · ${noticeText(compaction.summary, verdict)}`,
    })
    log.info("compaction recorded", { sessionID, taskID, number, remark: verdict.remark })
  }

  const makeNote = (
    { sessionID, taskID, role }: SessionTask,
    { requestID, summaryID, summary }: CompletedCompaction,
    hasShell: boolean,
    { number, sessionState, context }: Exclude<Decision, { kind: "reuse" }>,
  ): NoteMaterial => {
    const identity = { ...context.identity, hasShell }
    const facts = { ...context.facts, compactions: number }
    const { lastHandoff } = sessionState
    const before = lastHandoff?.summaryID === summaryID ? undefined : lastHandoff?.text
    const verdict = judgeBeside(lastHandoff, { summaryID, summary }, instructions(sessionID))
    const text = renderNote({
      identity,
      facts,
      logs: context.logs,
      number,
      summary,
      verdict,
      earlierHandoff: before,
      isInherited: !hasOwnHandoff(sessionState),
      budget: createBudget(sessionState.contextTokens ?? UNKNOWN_CONTEXT_TOKENS),
    })
    const note = { requestID, taskID, role, hasShell, text, isComplete: identity.ledger !== undefined }
    return { sessionState, identity, facts, verdict, note }
  }

  const recordOnce = async (
    binding: SessionTask,
    compaction: CompletedCompaction,
    hasShell: boolean,
  ): Promise<NoteAndDelivery> => {
    const decision = await decide(binding, compaction, hasShell)
    if (decision.kind === "reuse") return { note: decision.note, ...NOTHING_TO_RECORD }
    const noted = makeNote(binding, compaction, hasShell, decision)
    const { verdict, note } = noted
    if (decision.kind === "note") {
      const again = { ...compaction, saysLess: verdict.saysLess }
      const { sessionID } = binding
      await sessionStates.update(sessionID, (current) => withResumeNote(withKnown(current, again), again, note))
      return { note: note.text, ...NOTHING_TO_RECORD }
    }
    const saved = write(binding, compaction, noted)
    return { note: note.text, saved, delivered: saved.then(() => outbox.flush(DELIVERY_WAIT_MS, UNSAVED_WAIT_MS)) }
  }

  return {
    /** Makes the note of a compaction, and records it once, however often it is reported. */
    record: (binding: SessionTask, completed: CompletedCompaction, hasShell: boolean): Promise<NoteAndDelivery> => {
      // A summary may repeat a key that the user typed for the conversation alone.
      const compaction = { ...completed, summary: redactKeys(completed.summary) }
      const key = [compaction.summaryID, binding.taskID, binding.role].join("\n")
      const known = running.get(key)
      if (known) return known
      const forget = (): void => void running.delete(key)
      // Forgotten before it resolves: the next request may be of an agent without a shell, whose note is another.
      const started = recordOnce(binding, compaction, hasShell).then((noted) => {
        const delivered = noted.delivered.finally(forget)
        delivered.catch((error: unknown) => log.error("a compaction is not recorded", { error: describeError(error) }))
        return { ...noted, delivered }
      })
      started.catch(forget)
      running.set(key, started)
      return started
    },
  }
}
