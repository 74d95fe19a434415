import { describeError, type Log } from "../host/log.ts"
import type { createDelivery, Delivery } from "./outbox-delivery.ts"
import {
  aboutEntry,
  type NamedRecord,
  type OutboxAttempt,
  type OutboxFiles,
  type OutboxRecord,
  subjectOf,
} from "./outbox-store.ts"

type UnsavedDeps = {
  readonly files: Pick<OutboxFiles, "write" | "before" | "remove">
  readonly deliver: ReturnType<typeof createDelivery>
  readonly log: Log
}

type Unsaved = { readonly name: string; record: OutboxRecord }

/**
 * Records the disk refused: held in memory, delivered directly, and saved as soon as the disk allows it. What was saved
 * for the same subject before the disk refused goes ahead of them, so that the order stays.
 */
export const createUnsavedRecords = ({ files, deliver, log }: UnsavedDeps) => {
  const held: Unsaved[] = []
  /** Of records that are on the disk: what was done about them while it could not be written. */
  const deliveredNames = new Set<string>()
  const attempts = new Map<string, OutboxAttempt>()
  let turn: Promise<void> = Promise.resolve()

  const deliverSaved = async ({ name, record }: NamedRecord): Promise<Delivery> => {
    const attempt = attempts.get(name)
    const delivery = await deliver(attempt ? { ...record, attempt } : record, new Map(), async (made) => {
      attempts.set(name, made)
    })
    if (delivery.kind === "delivered") {
      deliveredNames.add(name)
      // A full disk takes away what it does not take in; whatever else refuses is asked again by the next delivery.
      await files.remove(name).catch(() => undefined)
    }
    return delivery
  }

  /** What can never be delivered is passed over: it is parked once the disk is back. */
  const deliverAhead = async ({ name, record: { entry } }: Unsaved): Promise<Delivery> => {
    for (const earlier of await files.before(name)) {
      if (subjectOf(earlier.record.entry) !== subjectOf(entry) || deliveredNames.has(earlier.name)) continue
      const delivery = await deliverSaved(earlier)
      if (delivery.kind === "refused" || delivery.kind === "unavailable") return delivery
    }
    return { kind: "delivered" }
  }

  const deliverDirectly = async (item: Unsaved): Promise<Delivery> => {
    const ahead = await deliverAhead(item)
    if (ahead.kind !== "delivered") return ahead
    return await deliver(item.record, new Map(), async (attempt) => {
      item.record = { ...item.record, attempt }
    })
  }

  const isSettled = async (item: Unsaved): Promise<boolean> => {
    const about = aboutEntry(item.record.entry)
    const refusal = await files.write(item.name, item.record).then(
      () => undefined,
      (error: unknown) => describeError(error),
    )
    if (refusal === undefined) return true
    const delivery = await deliverDirectly(item)
    if (delivery.kind === "delivered") return true
    const lost = delivery.kind === "rejected"
    log.error(lost ? "a record is lost" : "a record is only in memory: neither disk nor ledger took it", {
      ...about,
      disk: refusal,
      ledger: delivery.reason,
      ...(lost ? { entry: JSON.stringify(item.record.entry).slice(0, 4000) } : {}),
    })
    return lost
  }

  const settleAll = async (): Promise<void> => {
    for (let first = held[0]; first && (await isSettled(first)); first = held[0]) held.shift()
  }

  const retry = (): Promise<void> => {
    turn = turn.then(settleAll)
    return turn
  }

  return {
    /** Resolves when the record was tried; never rejects. No delivery from the disk may be under way meanwhile. */
    add: async (name: string, record: OutboxRecord): Promise<void> => {
      held.push({ name, record })
      await retry()
    },
    retry,
    count: (): number => held.length,
    /** Whether a record that is held has to be delivered before this one on the disk. */
    isAheadOf: (name: string, subject: string): boolean =>
      held.some((item) => item.name < name && subjectOf(item.record.entry) === subject),
    /** Whether a record on the disk was delivered while that could not be noted there. */
    wasDelivered: (name: string): boolean => deliveredNames.has(name),
    /** The record on the disk with the attempt that could not be noted there. */
    withAttempt: (name: string, record: OutboxRecord): OutboxRecord => {
      const attempt = attempts.get(name)
      return attempt ? { ...record, attempt } : record
    },
    /** The disk tells of this record again. */
    forget: (name: string): void => {
      attempts.delete(name)
      deliveredNames.delete(name)
    },
  }
}

export type UnsavedRecords = ReturnType<typeof createUnsavedRecords>
