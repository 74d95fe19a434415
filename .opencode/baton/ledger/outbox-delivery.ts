import { describeError } from "../host/log.ts"
import type { Sign } from "../host/state-mark.ts"
import { mergeHandoff, parseHandoffTitle, TextTooLongError, textLimit, toHandoffBody } from "./description.ts"
import { type LearningEntry, type LearningStep, planSteps, type RetireEntry, type WithdrawEntry } from "./learnings.ts"
import type { LearningLedger, Ledger, LedgerWrite } from "./ledger.ts"
import { type OutboxEntry, orderingKey } from "./outbox-store.ts"

type Delivery =
  | { readonly kind: "delivered" }
  /** It can never be delivered. */
  | { readonly kind: "rejected"; readonly reason: string }
  /** The ledger refused this one; others may go through. */
  | { readonly kind: "refused"; readonly reason: string }
  /** Nothing can be delivered now. */
  | { readonly kind: "unavailable"; readonly reason: string }

export type DeliveryDeps = {
  readonly ledger: Pick<Ledger, "readTask" | "appendLog" | "replaceDescription" | "shorten"> & LearningLedger
  /** Signs what the user said. @throws the file system's own error where the account has no key and none can be made */
  readonly ensureSigner: () => Sign
}

/** Log texts of the tasks written to in one drain; saves a read of the ledger for each further entry. */
export type LogCache = Map<string, string[]>

type EntryOf<Kind extends OutboxEntry["kind"]> = Extract<OutboxEntry, { kind: Kind }>
const fromWrite = (write: LedgerWrite, name: string): Delivery => {
  switch (write.kind) {
    case "written":
      return { kind: "delivered" }
    case "unknown":
      return { kind: "rejected", reason: `the ledger does not know ${name}` }
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
 * Delivers an entry at most once: a log line names its record, so an equal one in the ledger is the same. Handoffs and learnings are
 * merged, which can be repeated.
 */
export const createDelivery = ({ ledger, ensureSigner }: DeliveryDeps) => {
  const appendOnce = async (taskID: string, message: string, logs: string[]): Promise<Delivery> => {
    const text = await ledger.shorten(taskID, message)
    if (logs.includes(text)) return { kind: "delivered" }
    const delivery = fromWrite(await ledger.appendLog(taskID, text), taskID)
    if (delivery.kind === "delivered") logs.push(text)
    return delivery
  }

  /** The session's handoff is cut to what fits; others that the description has no place for go to the log, once. */
  const deliverHandoff = async (
    { taskID, section, specification }: EntryOf<"handoff">,
    description: string,
    logs: string[],
  ): Promise<Delivery> => {
    const body = toHandoffBody(section)
    const merge = (text: string) => mergeHandoff(description, text, { original: specification, maxBytes })
    const whole = merge(body)
    const room = Buffer.byteLength(whole.description) - Buffer.byteLength(whole.own)
    const own = await ledger.shorten(taskID, whole.own, Math.max(0, room))
    if (parseHandoffTitle(own)?.at !== parseHandoffTitle(whole.own)?.at)
      return { kind: "rejected", reason: `the description of ${taskID} has no room for a handoff's title` }
    const merged = merge(own)
    for (const dropped of merged.dropped.toReversed()) {
      const delivery = await appendOnce(taskID, `Moved here from the description:\n\n${dropped}`, logs)
      if (delivery.kind !== "delivered") return delivery
    }
    if (merged.description === description) return { kind: "delivered" }
    return fromWrite(await ledger.replaceDescription(taskID, merged.description), taskID)
  }

  const deliverLearning = async (entry: LearningEntry | RetireEntry | WithdrawEntry): Promise<Delivery> => {
    let sign: Sign
    try {
      sign = ensureSigner()
    } catch (error) {
      return { kind: "refused", reason: `this account has no key to sign a learning with: ${describeError(error)}` }
    }
    for (let isAdded = false; ; isAdded = true) {
      const read = await ledger.readLearnings(entry.project)
      if (read.kind === "unavailable") return { kind: read.answered ? "refused" : "unavailable", reason: read.reason }
      // What was added is signed now, and not added again.
      const steps = planSteps(read.learnings, entry, sign).filter(({ kind }) => !isAdded || kind !== "add")
      for (const step of steps) {
        const delivery = fromWrite(await takeStep(ledger, step), orderingKey(entry))
        if (delivery.kind !== "delivered") return delivery
      }
      if (!steps.some(({ kind }) => kind === "add")) return { kind: "delivered" }
    }
  }

  const deliver = async (entry: OutboxEntry, cache: LogCache): Promise<Delivery> => {
    if (!("taskID" in entry)) return await deliverLearning(entry)
    const cached = cache.get(entry.taskID)
    if (cached && entry.kind === "log") return await appendOnce(entry.taskID, entry.message, cached)
    const read = await ledger.readTask(entry.taskID)
    if (read.kind === "unknown") return { kind: "rejected", reason: `the ledger has no task ${entry.taskID}` }
    if (read.kind === "unavailable") return { kind: read.answered ? "refused" : "unavailable", reason: read.reason }
    const logs = read.task.logs.map(({ message }) => message.untrusted)
    cache.set(entry.taskID, logs)
    if (entry.kind === "log") return await appendOnce(entry.taskID, entry.message, logs)
    return await deliverHandoff(entry, read.task.description.untrusted, logs)
  }

  /** Never rejects. */
  return async (entry: OutboxEntry, cache: LogCache): Promise<Delivery> => {
    try {
      const delivery = await deliver(entry, cache)
      if (delivery.kind !== "delivered") cache.delete(orderingKey(entry))
      return delivery
    } catch (error) {
      cache.delete(orderingKey(entry))
      if (error instanceof TextTooLongError) return { kind: "rejected", reason: error.message }
      return { kind: "unavailable", reason: describeError(error) }
    }
  }
}
