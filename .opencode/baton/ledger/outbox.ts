import { randomBytes } from "node:crypto"
import { isDeepStrictEqual } from "node:util"
import { withDeadline } from "../host/async.ts"
import { createFileLock } from "../host/file-lock.ts"
import { describeError, type Log } from "../host/log.ts"
import type { StateFolder } from "../host/state.ts"
import { createDelivery, type DeliveryDeps } from "./outbox-delivery.ts"
import { createDrain, type Drained, LOCKED } from "./outbox-drain.ts"
import { aboutEntry, type Outbox, type OutboxEntry, subjectOf } from "./outbox-entry.ts"
import { createOutboxFiles } from "./outbox-files.ts"
import type { OutboxRecord } from "./outbox-record.ts"
import { createUnsavedRecords } from "./outbox-unsaved.ts"

export type { Outbox, OutboxEntry, OutboxStatus, ParkedEntry } from "./outbox-entry.ts"

const FIRST_RETRY_MS = 2000
const LONGEST_RETRY_MS = 5 * 60_000
/** prog waits 5 s for a locked database, and a call is ended 6 s after its start at the latest. */
const ORPHAN_GRACE_MS = 7000
const FLUSH_POLL_MS = 25
const ONLY_IN_MEMORY = "records are only in memory: neither disk nor ledger took them"

export type OutboxDeps = {
  readonly ledger: DeliveryDeps["ledger"]
  readonly state: Pick<StateFolder, "path" | "write">
  readonly log: Log
  readonly now?: () => Date
  /** Makes a name unique among processes; lower-case letters and digits. */
  readonly ids?: () => string
  readonly firstRetryMs?: number
  readonly longestRetryMs?: number
  readonly orphanGraceMs?: number
}

const pause = (ms: number): Promise<void> =>
  new Promise((resolve) => {
    setTimeout(resolve, ms).unref()
  })

/**
 * The outbox of one project, in `.opencode/state/outbox/`; see docs/outbox.md. Does nothing before its first call;
 * several outboxes, in one process or in several, may share the folder.
 */
export const createOutbox = (deps: OutboxDeps): Outbox => {
  const { ledger, state, log, ids = () => randomBytes(4).toString("hex") } = deps
  const { firstRetryMs = FIRST_RETRY_MS, longestRetryMs = LONGEST_RETRY_MS, orphanGraceMs = ORPHAN_GRACE_MS } = deps
  const now = () => (deps.now?.() ?? new Date()).getTime()
  const self = `${process.pid}-${randomBytes(6).toString("hex")}`
  const files = createOutboxFiles(state)
  const deliver = createDelivery({ ledger, now, self, orphanGraceMs })
  const unsaved = createUnsavedRecords({ files, deliver, log })
  const lock = createFileLock({ path: files.lockPath })
  let stopped = false
  const drainFiles = createDrain({
    files,
    unsaved,
    tryLock: () => lock.tryAcquire(),
    deliver,
    log,
    now,
    isStopped: () => stopped,
  })

  let saving: Promise<void> = Promise.resolve()
  let running: Promise<Drained> | undefined
  let wanted = false
  let failures = 0
  let lastFailure: string | undefined
  let retry: NodeJS.Timeout | undefined

  const scheduleRetry = ({ reason, forMs = 0 }: Drained): void => {
    clearTimeout(retry)
    retry = undefined
    if (reason === undefined || stopped) return
    const backoffMs = reason === LOCKED ? firstRetryMs : firstRetryMs * 2 ** Math.min(failures - 1, 20)
    retry = setTimeout(() => void drainOnce(), Math.max(forMs, Math.min(backoffMs, longestRetryMs)))
    retry.unref()
  }

  const drainUntilDone = async (): Promise<Drained> => {
    let drained: Drained
    do {
      wanted = false
      await unsaved.retry()
      drained = await drainFiles()
    } while (wanted && drained.reason === undefined)
    if (drained.reason === undefined && unsaved.count() > 0) drained = { ...drained, reason: ONLY_IN_MEMORY }
    failures = drained.reason === undefined || drained.delivered > 0 ? 0 : failures
    if (drained.reason !== undefined && drained.reason !== LOCKED) failures += 1
    lastFailure = drained.reason
    return drained
  }

  const drainOnce = async (): Promise<Drained> => {
    if (stopped) return { reason: "stopped", delivered: 0 }
    wanted = true
    running ??= drainUntilDone().finally(() => {
      running = undefined
    })
    const drained = await running
    scheduleRetry(drained)
    return drained
  }

  const save = async (entry: OutboxEntry, isDoubtful: boolean): Promise<void> => {
    const at = new Date(now()).toISOString()
    const attempt = isDoubtful ? { attempt: { at, by: self, equalBefore: 0 } } : {}
    const record: OutboxRecord = { version: 1, createdAt: at, entry, ...attempt }
    const name = await files.nextName(now(), ids())
    try {
      await files.write(name, record)
    } catch (error) {
      log.warn("the outbox cannot be written: the record goes to the ledger directly", {
        ...aboutEntry(entry),
        reason: describeError(error),
      })
      // What is being delivered from the disk may be ahead of this one.
      while (running !== undefined) await running
      await unsaved.add(name, record)
    }
  }

  const readWaiting = async (subject: string): Promise<OutboxEntry[]> => {
    const found: OutboxEntry[] = []
    for (const name of await files.list()) {
      const read = await files.read(name)
      if (read.kind === "record" && subjectOf(read.record.entry) === subject) found.push(read.record.entry)
    }
    return found
  }

  const add = async (entry: OutboxEntry, { isDoubtful = false } = {}): Promise<void> => {
    saving = saving.then(() => save(entry, isDoubtful))
    await saving
    void drainOnce()
  }

  const findWaiting = async (subject: string): Promise<OutboxEntry[]> => {
    try {
      return await readWaiting(subject)
    } catch (error) {
      log.warn("cannot tell what waits in the outbox", { subject, reason: describeError(error) })
      return []
    }
  }

  return {
    add: (entry) => add(entry),
    addUnlessKnown: async (entry) => {
      const waiting = await findWaiting(subjectOf(entry))
      // The ledger may be out of reach now; it is asked when the record is delivered.
      if (!waiting.some((one) => isDeepStrictEqual(one, entry))) await add(entry, { isDoubtful: entry.kind === "log" })
    },
    waiting: findWaiting,
    drain: async () => {
      await drainOnce()
    },
    flush: async (deadlineMs) => {
      const endsAt = performance.now() + deadlineMs
      const work = async (): Promise<void> => {
        await saving
        while (performance.now() < endsAt) {
          const { reason } = await drainOnce()
          if (reason !== LOCKED) return
          await pause(FLUSH_POLL_MS)
        }
      }
      const ended = await withDeadline(work(), deadlineMs)
      if (ended.kind === "failed") throw ended.error
    },
    status: async () => {
      try {
        const [waiting, parked] = await Promise.all([files.list(), files.listParked()])
        const count = waiting.length + unsaved.count()
        return { waiting: count, parked, ...(lastFailure === undefined ? {} : { lastFailure }) }
      } catch (error) {
        return { waiting: unsaved.count(), parked: [], lastFailure: describeError(error) }
      }
    },
    stop: () => {
      stopped = true
      clearTimeout(retry)
    },
  }
}
