import { describeError, type Log } from "../host/log.ts"
import type { createDelivery } from "./outbox-delivery.ts"
import { aboutEntry } from "./outbox-entry.ts"
import type { OutboxFiles } from "./outbox-files.ts"
import type { OutboxRecord } from "./outbox-record.ts"

export type UnsavedDeps = {
  readonly files: Pick<OutboxFiles, "write">
  readonly deliver: ReturnType<typeof createDelivery>
  readonly log: Log
}

type Unsaved = { readonly name: string; record: OutboxRecord }

/** Records the disk refused: held in memory, delivered directly, and saved as soon as the disk allows it. */
export const createUnsavedRecords = ({ files, deliver, log }: UnsavedDeps) => {
  const held: Unsaved[] = []
  let turn: Promise<void> = Promise.resolve()

  const isSettled = async (item: Unsaved): Promise<boolean> => {
    const about = aboutEntry(item.record.entry)
    const refusal = await files.write(item.name, item.record).then(
      () => undefined,
      (error: unknown) => describeError(error),
    )
    if (refusal === undefined) return true
    const delivery = await deliver(item.record, new Map(), async (attempt) => {
      item.record = { ...item.record, attempt }
    })
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
    /** Resolves when the record was tried; never rejects. */
    add: async (name: string, record: OutboxRecord): Promise<void> => {
      held.push({ name, record })
      await retry()
    },
    retry,
    count: (): number => held.length,
  }
}
