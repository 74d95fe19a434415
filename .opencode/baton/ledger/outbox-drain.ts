import type { HeldLock } from "../host/file-lock.ts"
import { describeError, type Log } from "../host/log.ts"
import type { createDelivery, KnownLogs } from "./outbox-delivery.ts"
import { aboutEntry, subjectOf } from "./outbox-entry.ts"
import type { OutboxFiles } from "./outbox-files.ts"
import type { OutboxRecord } from "./outbox-record.ts"
import type { UnsavedRecords } from "./outbox-unsaved.ts"

/**
 * What one pass over the outbox came to. `reason` is there when something is left, `forMs` when nothing is to be tried
 * before so many milliseconds.
 */
export type Drained = { readonly reason?: string; readonly delivered: number; readonly forMs?: number }

export type DrainDeps = {
  readonly files: OutboxFiles
  readonly unsaved: Pick<UnsavedRecords, "isAheadOf" | "wasDelivered" | "withAttempt" | "forget">
  readonly tryLock: () => Promise<HeldLock | undefined>
  readonly deliver: ReturnType<typeof createDelivery>
  readonly log: Log
  readonly now: () => number
  readonly isStopped: () => boolean
}

export const LOCKED = "another process is delivering"

/** `blocked`: why what belongs to a subject (or a file that cannot be read) has to wait. */
type Pass = { readonly known: KnownLogs; readonly blocked: Map<string, string> }
type Step = "delivered" | "parked" | "gone" | "refused" | { readonly stop: string; readonly forMs?: number }

/** One delivery of all that waits, in order: per task without exception, and among tasks as far as they are accepted. */
export const createDrain = ({ files, unsaved, tryLock, deliver, log, now, isStopped }: DrainDeps) => {
  const park = async (name: string, reason: string, extra: Record<string, unknown> = {}): Promise<Step> => {
    await files.park(name, reason, new Date(now()).toISOString())
    log.warn("a record cannot be delivered and is parked", { name, reason, ...extra })
    return "parked"
  }

  const deliverRecord = async (name: string, record: OutboxRecord, { known, blocked }: Pass): Promise<Step> => {
    const about = aboutEntry(record.entry)
    const subject = subjectOf(record.entry)
    if (!blocked.has(subject) && unsaved.isAheadOf(name, subject))
      blocked.set(subject, "an earlier record is only in memory")
    if (blocked.has(subject)) return "refused"
    const delivery = await deliver(record, known, async (attempt) => {
      await files.write(name, { ...record, attempt })
      unsaved.forget(name)
    })
    switch (delivery.kind) {
      case "delivered":
        await files.remove(name)
        log.debug("a record reached the ledger", { name, ...about })
        return "delivered"
      case "rejected":
        return await park(name, delivery.reason, about)
      case "refused":
        blocked.set(subject, delivery.reason)
        log.warn("the ledger refused a record, which waits", { name, ...about, reason: delivery.reason })
        return "refused"
      case "unavailable":
        log.info("the ledger cannot be reached, the outbox waits", { name, reason: delivery.reason })
        return { stop: delivery.reason, ...(delivery.forMs === undefined ? {} : { forMs: delivery.forMs }) }
    }
  }

  const step = async (name: string, pass: Pass): Promise<Step> => {
    if (unsaved.wasDelivered(name)) {
      await files.remove(name)
      unsaved.forget(name)
      return "gone"
    }
    const parsed = await files.read(name)
    if (parsed.kind === "gone") return "gone"
    if (parsed.kind === "unreadable") {
      pass.blocked.set(name, parsed.reason)
      return "refused"
    }
    if (parsed.kind === "malformed") return await park(name, parsed.reason)
    return await deliverRecord(name, unsaved.withAttempt(name, parsed.record), pass)
  }

  const drainLocked = async (lock: HeldLock): Promise<Drained> => {
    const pass: Pass = { known: new Map(), blocked: new Map() }
    const refused = new Set<string>()
    let delivered = 0
    for (;;) {
      const names = (await files.list()).filter((name) => !refused.has(name))
      if (names.length === 0) break
      for (const name of names) {
        if (isStopped()) return { reason: "stopped", delivered }
        if (!(await lock.isHeld())) return { reason: LOCKED, delivered }
        const result = await step(name, pass)
        if (typeof result === "object") return { reason: result.stop, delivered, ...result }
        if (result === "delivered") delivered += 1
        if (result === "refused") refused.add(name)
      }
    }
    const [reason] = pass.blocked.values()
    return { delivered, ...(reason === undefined ? {} : { reason }) }
  }

  /** Never rejects. */
  return async (): Promise<Drained> => {
    try {
      if ((await files.list()).length === 0) return { delivered: 0 }
      const lock = await tryLock()
      if (!lock) return { reason: LOCKED, delivered: 0 }
      try {
        return await drainLocked(lock)
      } finally {
        await lock.release()
      }
    } catch (error) {
      const reason = describeError(error)
      log.warn("the outbox cannot be worked on", { reason })
      return { reason, delivered: 0 }
    }
  }
}
