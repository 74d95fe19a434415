import { createLruMap } from "../host/async.ts"
import { describeError } from "../host/log.ts"
import type { Sign } from "../host/state-mark.ts"
import { mergeHandoff, parseHandoffTitle, TextTooLongError, textLimit, toHandoffBody } from "./description.ts"
import { type LearningEntry, type LearningStep, planSteps, type RetireEntry, type WithdrawEntry } from "./learnings.ts"
import type { LearningLedger, Ledger, LedgerTask, LedgerWrite } from "./ledger.ts"
import { type OutboxAttempt, type OutboxEntry, type OutboxRecord, PUT_BACK, subjectOf } from "./outbox-store.ts"

type Delivery =
  | { readonly kind: "delivered" }
  /** It can never be delivered. */
  | { readonly kind: "rejected"; readonly reason: string }
  /** The ledger refused this one; others may go through. */
  | { readonly kind: "refused"; readonly reason: string }
  /** Nothing can be delivered now. `forMs`: milliseconds until the next attempt makes sense. */
  | { readonly kind: "unavailable"; readonly reason: string; readonly forMs?: number }

export type DeliveryDeps = {
  readonly ledger: Pick<Ledger, "readTask" | "appendLog" | "replaceDescription" | "shorten"> & LearningLedger
  /** Epoch ms. */
  readonly now: () => number
  /** Identifies this outbox in its attempts. */
  readonly self: string
  /** Milliseconds that a program may outlive the process that started it. */
  readonly orphanGraceMs: number
  /** Signs what the user said; undefined for an account without a key. */
  readonly readSigner: () => Sign | undefined
}

/** Log texts of the tasks written to in one drain; saves a read of the ledger for each further entry. */
export type KnownLogs = Map<string, string[]>

type EntryOf<Kind extends OutboxEntry["kind"]> = Extract<OutboxEntry, { kind: Kind }>
type SaveAttempt = (attempt: OutboxAttempt) => Promise<void>

/**
 * A line that names its record, a compaction's session and number or a pass: an equal one in the ledger is the same record, whose
 * attempt the disk did not note.
 */
const NAMES_RECORD = /^(?:Compaction \d+: .* \(session \w+\)$|Pass .* \(pass_\d+_[0-9a-f]+, )/s

const countEqual = (texts: readonly string[], text: string): number => texts.filter((one) => one === text).length

const fromWrite = (write: LedgerWrite, subject: string): Delivery => {
  switch (write.kind) {
    case "written":
      return { kind: "delivered" }
    case "unknown":
      return { kind: "rejected", reason: `the ledger does not know ${subject}` }
    case "refused":
    case "unavailable":
      return write
  }
}

const takeStep = (ledger: LearningLedger, step: LearningStep): Promise<LedgerWrite> => {
  switch (step.kind) {
    case "add":
      return ledger.addLearning(step.learning)
    case "edit":
      return ledger.editLearning(step.id, step.detail)
    case "retire":
      return ledger.retireLearning(step.id, step.reason)
  }
}

/** Of a whole description. */
const maxBytes = textLimit(process.platform)

/**
 * Delivers a record at most once: the ledger is first searched for the result of an earlier attempt. Handoffs and learnings
 * are merged, which can be repeated.
 *
 * A log entry was written by that attempt if the task now has more entries of the same text than just before it. Clocks are
 * not used, so equal texts are each delivered, but for a line that names its record.
 */
export const createDelivery = ({ ledger, now, self, orphanGraceMs, readSigner }: DeliveryDeps) => {
  const firstSeen = createLruMap<number>()

  /** Milliseconds to wait, since a program started by a killed process may still write. */
  const orphanDelay = (attempt: OutboxAttempt | undefined): number => {
    if (!attempt || attempt.by === self || attempt.by === PUT_BACK) return 0
    const key = `${attempt.by} ${attempt.at}`
    const seen = firstSeen.get(key) ?? now()
    firstSeen.set(key, seen)
    return Math.min(Date.parse(attempt.at), seen) + orphanGraceMs - now()
  }

  const deliverLog = async (
    { taskID, message }: EntryOf<"log">,
    attempt: OutboxAttempt | undefined,
    logs: string[],
    save: SaveAttempt,
  ): Promise<Delivery> => {
    const text = await ledger.shorten(taskID, message)
    const equalBefore = countEqual(logs, text)
    if (attempt && equalBefore > (attempt.equalBefore ?? 0)) return { kind: "delivered" }
    if (equalBefore > 0 && NAMES_RECORD.test(text)) return { kind: "delivered" }
    await save({ at: new Date(now()).toISOString(), by: self, equalBefore })
    const delivery = fromWrite(await ledger.appendLog(taskID, text), taskID)
    if (delivery.kind === "delivered") logs.push(text)
    return delivery
  }

  /** The session's handoff is cut to what fits; others that the description has no place for go to the log, once. */
  const deliverHandoff = async (
    { taskID, section, specification }: EntryOf<"handoff">,
    { description: { untrusted: description }, logs }: LedgerTask,
    save: SaveAttempt,
  ): Promise<Delivery> => {
    const body = toHandoffBody(section)
    const merge = (text: string) => mergeHandoff(description, text, { original: specification, maxBytes })
    const whole = merge(body)
    const room = Buffer.byteLength(whole.description) - Buffer.byteLength(whole.own)
    const own = await ledger.shorten(taskID, whole.own, Math.max(0, room))
    if (parseHandoffTitle(own)?.at !== parseHandoffTitle(whole.own)?.at)
      return { kind: "rejected", reason: `the description of ${taskID} has no room for a handoff's title` }
    const merged = merge(own)
    if (merged.description !== description || merged.dropped.length > 0)
      await save({ at: new Date(now()).toISOString(), by: self })
    for (const dropped of merged.dropped.toReversed()) {
      const text = await ledger.shorten(taskID, `Moved here from the description:\n\n${dropped}`)
      if (logs.some(({ message }) => message.untrusted === text)) continue
      const delivery = fromWrite(await ledger.appendLog(taskID, text), taskID)
      if (delivery.kind !== "delivered") return delivery
    }
    if (merged.description === description) return { kind: "delivered" }
    return fromWrite(await ledger.replaceDescription(taskID, merged.description), taskID)
  }

  const deliverLearning = async (
    entry: LearningEntry | RetireEntry | WithdrawEntry,
    save: SaveAttempt,
  ): Promise<Delivery> => {
    const sign = readSigner()
    if (!sign) return { kind: "refused", reason: "this account has no key to sign a learning with" }
    for (let isAdded = false; ; isAdded = true) {
      const read = await ledger.readLearnings(entry.project)
      if (read.kind === "unavailable") return { kind: read.answered ? "refused" : "unavailable", reason: read.reason }
      // What was added is signed now, and not added again.
      const steps = planSteps(read.learnings, entry, sign).filter(({ kind }) => !isAdded || kind !== "add")
      if (steps.length > 0 && !isAdded) await save({ at: new Date(now()).toISOString(), by: self })
      for (const step of steps) {
        const delivery = fromWrite(await takeStep(ledger, step), subjectOf(entry))
        if (delivery.kind !== "delivered") return delivery
      }
      if (!steps.some(({ kind }) => kind === "add")) return { kind: "delivered" }
    }
  }

  const deliver = async (record: OutboxRecord, known: KnownLogs, save: SaveAttempt): Promise<Delivery> => {
    const { entry, attempt } = record
    const forMs = orphanDelay(attempt)
    if (forMs > 0) return { kind: "unavailable", reason: "an attempt of an ended process may still be running", forMs }
    if (!("taskID" in entry)) return await deliverLearning(entry, save)
    const cached = attempt || entry.kind !== "log" ? undefined : known.get(entry.taskID)
    if (cached && entry.kind === "log") return await deliverLog(entry, attempt, cached, save)
    const read = await ledger.readTask(entry.taskID)
    if (read.kind === "unknown") return { kind: "rejected", reason: `the ledger has no task ${entry.taskID}` }
    if (read.kind === "unavailable") return { kind: read.answered ? "refused" : "unavailable", reason: read.reason }
    if (entry.kind === "handoff") return await deliverHandoff(entry, read.task, save)
    const logs = read.task.logs.map(({ message }) => message.untrusted)
    known.set(entry.taskID, logs)
    return await deliverLog(entry, attempt, logs, save)
  }

  /** Never rejects. `save` stores the attempt before the ledger is called; if it fails, the ledger is not called. */
  return async (record: OutboxRecord, known: KnownLogs, save: SaveAttempt): Promise<Delivery> => {
    try {
      const delivery = await deliver(record, known, save)
      if (delivery.kind !== "delivered") known.delete(subjectOf(record.entry))
      return delivery
    } catch (error) {
      known.delete(subjectOf(record.entry))
      if (error instanceof TextTooLongError) return { kind: "rejected", reason: error.message }
      return { kind: "unavailable", reason: describeError(error) }
    }
  }
}
