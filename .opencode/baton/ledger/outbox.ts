import { randomBytes } from "node:crypto"
import { isDeepStrictEqual } from "node:util"
import { withDeadline } from "../host/async.ts"
import { createFileLock, type HeldLock } from "../host/file-lock.ts"
import { describeError, type Log } from "../host/log.ts"
import type { StateFolder } from "../host/state.ts"
import { readSigner } from "../host/state-mark.ts"
import { cutText } from "../host/text.ts"
import type { Notices } from "../host/tui.ts"
import { createDelivery, type DeliveryDeps, type KnownLogs } from "./outbox-delivery.ts"
import {
  createOutboxStore,
  logFields,
  type Outbox,
  type OutboxEntry,
  type OutboxRecord,
  type OutboxStore,
  subjectOf,
} from "./outbox-store.ts"

/**
 * The result of one drain of the outbox. `reason` is set if records are left, `forMs` if nothing is to be tried for that
 * many milliseconds.
 */
type DrainResult = { readonly reason?: string; readonly delivered: number; readonly forMs?: number }

type DrainDeps = {
  readonly store: OutboxStore
  readonly tryLock: () => Promise<HeldLock | undefined>
  readonly deliver: ReturnType<typeof createDelivery>
  readonly log: Log
  readonly now: () => number
  readonly isStopped: () => boolean
}

const LOCK_TAKEN = "another process is delivering"
const ONLY_IN_MEMORY = "records are only in memory: neither disk nor ledger took them"

/** `blocked`: why a subject (or an unreadable file) has to wait. */
type DrainState = {
  readonly known: KnownLogs
  readonly blocked: Map<string, string>
  /** The only subjects to deliver; all if absent. */
  readonly only?: ReadonlySet<string>
}
type Step = "delivered" | "parked" | "gone" | "refused" | { readonly stop: string; readonly forMs?: number }

/** Delivers all waiting records in order. The order within a task is strict; a refused record does not block other tasks. */
const createDrain = ({ store, tryLock, deliver, log, now, isStopped }: DrainDeps) => {
  const park = async (name: string, reason: string, record?: OutboxRecord): Promise<Step> => {
    const about = record ? logFields(record.entry) : {}
    try {
      await store.park(name, reason, new Date(now()).toISOString())
      log.warn("a record cannot be delivered and is parked", { name, reason, ...about })
      return "parked"
    } catch (error) {
      // It is parked when the disk is back, and blocks nothing.
      if (!record || !store.isUnsaved(name)) return "refused"
      const entry = cutText(JSON.stringify(record.entry), 4000)
      log.error("a record is lost", { ...about, disk: describeError(error), ledger: reason, entry })
      await store.remove(name)
      return "parked"
    }
  }

  /**
   * Stores an attempt before the ledger is called. If the disk refuses it, memory is enough only for a subject with records
   * that the disk refused, too.
   */
  const noteAttempt = async (name: string, record: OutboxRecord): Promise<void> => {
    const subject = subjectOf(record.entry)
    const isHeld = store.unsaved().some(({ entry }) => subjectOf(entry) === subject)
    const refusal = await store.write(name, record)
    if (refusal === undefined) return
    if (!isHeld) throw new Error(`the attempt cannot be noted: ${refusal}`)
    store.hold(name, record)
  }

  const deliverRecord = async (
    name: string,
    record: OutboxRecord,
    { known, blocked, only }: DrainState,
  ): Promise<Step> => {
    const about = logFields(record.entry)
    const subject = subjectOf(record.entry)
    if (blocked.has(subject) || only?.has(subject) === false) return "refused"
    const delivery = await deliver(record, known, (attempt) => noteAttempt(name, { ...record, attempt }))
    switch (delivery.kind) {
      case "delivered":
        await store.remove(name)
        log.debug("a record reached the ledger", { name, ...about })
        return "delivered"
      case "rejected":
        return await park(name, delivery.reason, record)
      case "refused":
        blocked.set(subject, delivery.reason)
        log.warn("the ledger refused a record, which waits", { name, ...about, reason: delivery.reason })
        return "refused"
      case "unavailable":
        log.info("the ledger cannot be reached, the outbox waits", { name, reason: delivery.reason })
        return { stop: delivery.reason, ...(delivery.forMs === undefined ? {} : { forMs: delivery.forMs }) }
    }
  }

  const step = async (name: string, state: DrainState): Promise<Step> => {
    const read = await store.read(name)
    switch (read.kind) {
      case "gone":
        return "gone"
      case "unreadable":
        state.blocked.set(name, read.reason)
        return "refused"
      case "malformed":
        return await park(name, read.reason)
      case "record":
        return await deliverRecord(name, read.record, state)
    }
  }

  const drainAll = async (isHeld: () => Promise<boolean>, only?: ReadonlySet<string>): Promise<DrainResult> => {
    const state: DrainState = { known: new Map(), blocked: new Map(), ...(only ? { only } : {}) }
    const refused = new Set<string>()
    let delivered = 0
    for (;;) {
      const names = (await store.list()).filter((name) => !refused.has(name))
      if (names.length === 0) break
      for (const name of names) {
        if (isStopped()) return { reason: "stopped", delivered }
        if (!(await isHeld())) return { reason: LOCK_TAKEN, delivered }
        const result = await step(name, state)
        if (typeof result === "object") return { reason: result.stop, delivered, ...result }
        if (result === "delivered") delivered += 1
        if (result === "refused") refused.add(name)
      }
    }
    const [reason] = state.blocked.values()
    return { delivered, ...(reason === undefined ? {} : { reason }) }
  }

  const drainSaved = async (): Promise<DrainResult> => {
    if ((await store.list()).length === 0) return { delivered: 0 }
    const lock = await tryLock()
    if (!lock) return { reason: LOCK_TAKEN, delivered: 0 }
    try {
      return await drainAll(lock.isHeld)
    } finally {
      await lock.release()
    }
  }

  /** Works without the lock: a disk that refuses records refuses the lock, too. */
  const drainUnsaved = async (): Promise<DrainResult> => {
    const only = new Set(store.unsaved().map(({ entry }) => subjectOf(entry)))
    const drained = await drainAll(async () => true, only)
    const left = store.unsaved()
    for (const { entry } of left)
      log.error("a record is only in memory: neither disk nor ledger took it", {
        ...logFields(entry),
        ledger: drained.reason,
      })
    return left.length === 0 ? drained : { ...drained, reason: ONLY_IN_MEMORY }
  }

  const drain = async (): Promise<DrainResult> => {
    await store.saveUnsaved()
    const first: DrainResult = store.unsaved().length === 0 ? { delivered: 0 } : await drainUnsaved()
    if (first.reason !== undefined) return first
    try {
      const { delivered, ...rest } = await drainSaved()
      return { ...rest, delivered: delivered + first.delivered }
    } catch (error) {
      // The disk may have failed in between.
      if (store.unsaved().length === 0) throw error
      return drainUnsaved()
    }
  }

  /** Never rejects. */
  return async (): Promise<DrainResult> => {
    try {
      return await drain()
    } catch (error) {
      const reason = describeError(error)
      log.warn("the outbox cannot be worked on", { reason })
      return { reason, delivered: 0 }
    }
  }
}

const FIRST_RETRY_MS = 2000
const LONGEST_RETRY_MS = 5 * 60_000
/** prog waits 5 s for a locked database, and a call is killed 6 s after its start at the latest. */
const ORPHAN_GRACE_MS = 7000
/** A single failed try is mostly a busy database. */
const TOLD_FAILURES = 2
const FLUSH_POLL_MS = 25

export type OutboxDeps = {
  readonly ledger: DeliveryDeps["ledger"]
  readonly state: Pick<StateFolder, "path" | "write">
  readonly log: Log
  readonly notices?: Notices
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
 * Creates the outbox of one project, in `.opencode/state/outbox/`; see docs/outbox.md. Does nothing before its first call.
 * Several outboxes, in one or several processes, may share the folder.
 */
export const createOutbox = (deps: OutboxDeps): Outbox => {
  const { ledger, state, log, ids = () => randomBytes(4).toString("hex") } = deps
  const { firstRetryMs = FIRST_RETRY_MS, longestRetryMs = LONGEST_RETRY_MS, orphanGraceMs = ORPHAN_GRACE_MS } = deps
  const now = () => (deps.now?.() ?? new Date()).getTime()
  const self = `${process.pid}-${randomBytes(6).toString("hex")}`
  const store = createOutboxStore(state)
  const deliver = createDelivery({ ledger, now, self, orphanGraceMs, readSigner })
  const lock = createFileLock({ path: store.lockPath })
  let stopped = false
  const drain = createDrain({
    store,
    tryLock: () => lock.tryAcquire(),
    deliver,
    log,
    now,
    isStopped: () => stopped,
  })

  let saving: Promise<void> = Promise.resolve()
  let running: Promise<DrainResult> | undefined
  let wanted = false
  let failures = 0
  let lastFailure: string | undefined
  let retry: NodeJS.Timeout | undefined
  let isWaitTold = false

  /** Says once that records wait, and that they are delivered again. */
  const tell = ({ reason }: DrainResult): void => {
    if (reason !== undefined && failures >= TOLD_FAILURES && !isWaitTold) {
      isWaitTold = true
      deps.notices?.({ title: "records wait for the ledger", message: reason, isProblem: true })
    }
    if (reason === undefined && isWaitTold) {
      isWaitTold = false
      deps.notices?.({ title: "records are delivered again", message: "Nothing waits any more.", isProblem: true })
    }
  }

  const scheduleRetry = ({ reason, forMs = 0 }: DrainResult): void => {
    clearTimeout(retry)
    retry = undefined
    if (reason === undefined || stopped) return
    const backoffMs = reason === LOCK_TAKEN ? firstRetryMs : firstRetryMs * 2 ** Math.min(failures - 1, 20)
    retry = setTimeout(() => void drainOnce(), Math.max(forMs, Math.min(backoffMs, longestRetryMs)))
    retry.unref()
  }

  const drainUntilDone = async (): Promise<DrainResult> => {
    let drained: DrainResult
    do {
      wanted = false
      drained = await drain()
    } while (wanted && drained.reason === undefined)
    failures = drained.reason === undefined || drained.delivered > 0 ? 0 : failures
    if (drained.reason !== undefined && drained.reason !== LOCK_TAKEN) failures += 1
    lastFailure = drained.reason
    tell(drained)
    return drained
  }

  const drainOnce = async (): Promise<DrainResult> => {
    if (stopped) return { reason: "stopped", delivered: 0 }
    wanted = true
    running ??= drainUntilDone().finally(() => {
      running = undefined
    })
    const drained = await running
    scheduleRetry(drained)
    return drained
  }

  const save = async (entry: OutboxEntry, mayExist: boolean): Promise<void> => {
    const at = new Date(now()).toISOString()
    const attempt = mayExist ? { attempt: { at, by: self, equalBefore: 0 } } : {}
    const record: OutboxRecord = { version: 1, createdAt: at, entry, ...attempt }
    const name = await store.nextName(now(), ids(), entry)
    const refusal = await store.write(name, record)
    if (refusal === undefined) return
    store.hold(name, record)
    const about = { ...logFields(entry), reason: refusal }
    log.warn("the outbox cannot be written: the record goes to the ledger directly", about)
  }

  const readWaiting = async (subject: string): Promise<OutboxEntry[]> => {
    const found: OutboxEntry[] = []
    for (const name of await store.list(subject)) {
      const read = await store.read(name)
      if (read.kind === "record" && subjectOf(read.record.entry) === subject) found.push(read.record.entry)
    }
    return found
  }

  const add = async (entry: OutboxEntry, { mayExist = false } = {}): Promise<void> => {
    saving = saving.then(() => save(entry, mayExist))
    await saving
    void drainOnce()
  }

  const findWaiting = async (subject: string): Promise<OutboxEntry[] | undefined> => {
    try {
      return await readWaiting(subject)
    } catch (error) {
      log.warn("cannot tell what waits in the outbox", { subject, reason: describeError(error) })
      return undefined
    }
  }

  return {
    add: (entry) => add(entry),
    addIfMissing: async (entry) => {
      const waiting = await findWaiting(subjectOf(entry))
      // The ledger may be unavailable now; it is checked at the delivery.
      if (!waiting?.some((one) => isDeepStrictEqual(one, entry))) await add(entry, { mayExist: entry.kind === "log" })
    },
    pending: findWaiting,
    drain: async () => {
      await drainOnce()
    },
    flush: async (waitMs, unsavedMs = waitMs) => {
      await withDeadline(saving, waitMs)
      const deadlineMs = store.unsaved().length > 0 ? unsavedMs : waitMs
      const endsAt = performance.now() + deadlineMs
      const work = async (): Promise<void> => {
        await saving
        while (performance.now() < endsAt) {
          const { reason } = await drainOnce()
          if (reason !== LOCK_TAKEN) return
          await pause(FLUSH_POLL_MS)
        }
      }
      const ended = await withDeadline(work(), deadlineMs)
      if (ended.kind === "failed") throw ended.error
    },
    status: async () => {
      try {
        const [waiting, parked] = await Promise.all([store.list(), store.listParked()])
        return { waiting: waiting.length, parked, ...(lastFailure === undefined ? {} : { lastFailure }) }
      } catch (error) {
        return { waiting: store.unsaved().length, parked: [], lastFailure: describeError(error) }
      }
    },
    stop: () => {
      stopped = true
      clearTimeout(retry)
    },
  }
}
