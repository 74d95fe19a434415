import { randomBytes } from "node:crypto"
import { withDeadline } from "../host/async.ts"
import { createFileLock } from "../host/file-lock.ts"
import { describeError, type Log } from "../host/log.ts"
import type { StateFolder } from "../host/state.ts"
import { ensureSigner } from "../host/state-mark.ts"
import { cutText } from "../host/text.ts"
import type { Notices } from "../host/tui.ts"
import { createDelivery, type DeliveryDeps, type LogCache } from "./outbox-delivery.ts"
import {
  createOutboxStore,
  logFields,
  type Outbox,
  type OutboxEntry,
  type OutboxRecord,
  type OutboxStore,
  orderingKey,
  queueOf,
} from "./outbox-store.ts"

/** The result of one drain of the outbox. `reason` is set if records are left. */
type DrainResult = { readonly reason?: string; readonly delivered: number }

/** A record that the disk refused, and why. */
type Unsaved = { readonly name: string; readonly record: OutboxRecord; readonly refusal: string }

type DrainDeps = {
  readonly store: OutboxStore
  readonly tryLock: ReturnType<typeof createFileLock>["tryAcquire"]
  readonly deliver: ReturnType<typeof createDelivery>
  /** The records that the disk refused, oldest first. */
  readonly unsaved: Unsaved[]
  readonly log: Log
  readonly now: () => number
  readonly isStopped: () => boolean
}

const LOCK_TAKEN = "another process is delivering"
const ONLY_IN_MEMORY = "records are only in memory: neither disk nor ledger took them"

/** `blocked`: why an ordering key, or the queue of an unreadable file, has to wait. */
type DrainState = {
  readonly cache: LogCache
  readonly blocked: Map<string, string>
  /** The only ordering keys to deliver; all if absent. */
  readonly only?: ReadonlySet<string>
}
type Step = "delivered" | "parked" | "gone" | "refused" | { readonly stop: string }

/** Delivers all waiting records in order. The order within a task is strict; a refused record does not block other tasks. */
const createDrain = ({ store, tryLock, deliver, unsaved, log, now, isStopped }: DrainDeps) => {
  const park = async (name: string, reason: string, fields: object): Promise<Step> => {
    try {
      await store.park(name, reason, new Date(now()).toISOString())
      log.warn("a record cannot be delivered and is parked", { name, reason, ...fields })
      return "parked"
    } catch {
      // It is parked when the disk is back, and blocks nothing.
      return "refused"
    }
  }

  const deliverRecord = async (
    { name, record: { entry } }: Pick<Unsaved, "name" | "record">,
    { cache, blocked, only }: DrainState,
    reject: (reason: string, fields: object) => Promise<Step>,
  ): Promise<Step> => {
    const fields = logFields(entry)
    const key = orderingKey(entry)
    if (blocked.has(key) || only?.has(key) === false) return "refused"
    const delivery = await deliver(entry, cache)
    switch (delivery.kind) {
      case "delivered":
        log.debug("a record reached the ledger", { name, ...fields })
        return "delivered"
      case "rejected":
        return await reject(delivery.reason, fields)
      case "refused":
        blocked.set(key, delivery.reason)
        log.warn("the ledger refused a record, which waits", { name, ...fields, reason: delivery.reason })
        return "refused"
      case "unavailable":
        log.info("the ledger cannot be reached, the outbox waits", { name, reason: delivery.reason })
        return { stop: delivery.reason }
    }
  }

  const step = async (name: string, state: DrainState): Promise<Step> => {
    if (state.blocked.has(queueOf(name))) return "refused"
    const read = await store.read(name)
    switch (read.kind) {
      case "gone":
        return "gone"
      case "unreadable":
        state.blocked.set(queueOf(name), read.reason)
        return "refused"
      case "malformed":
        return await park(name, read.reason, {})
      case "record": {
        const { record } = read
        const result = await deliverRecord({ name, record }, state, (reason, fields) => park(name, reason, fields))
        return result === "delivered" && !(await store.remove(name)) ? "gone" : result
      }
    }
  }

  const drainSaved = async (state: DrainState, isHeld: () => Promise<boolean>): Promise<DrainResult> => {
    const seen = new Set<string>()
    let delivered = 0
    for (;;) {
      const names = (await store.list()).filter((name) => !seen.has(name))
      const [reason] = state.blocked.values()
      if (names.length === 0) return { delivered, ...(reason === undefined ? {} : { reason }) }
      for (const name of names) {
        if (isStopped()) return { reason: "stopped", delivered }
        if (!(await isHeld())) return { reason: LOCK_TAKEN, delivered }
        const result = await step(name, state)
        if (typeof result === "object") return { reason: result.stop, delivered }
        if (result === "delivered") delivered += 1
        seen.add(name)
      }
    }
  }

  /** Of a record that is on no disk. */
  const reject = async (reason: string, fields: object): Promise<Step> => {
    log.error("a record is lost: the ledger rejects it and the disk cannot keep it", { ...fields, ledger: reason })
    return "parked"
  }

  /** Saves the records in memory if the disk takes them again. */
  const saveUnsaved = async (): Promise<void> => {
    for (let first = unsaved[0]; first !== undefined; first = unsaved[0]) {
      if ((await store.write(first.name, first.record)) !== undefined) return
      unsaved.shift()
    }
  }

  /** Works without the lock: a disk that refuses records refuses the lock, too. Those on disk of the same keys go first. */
  const drainUnsaved = async (): Promise<DrainResult> => {
    const tried = [...unsaved]
    const only = new Set(tried.map(({ record }) => orderingKey(record.entry)))
    const state = { cache: new Map(), blocked: new Map(), only }
    const saved: DrainResult = await drainSaved(state, async () => true).catch((error: unknown) => {
      log.warn("the records on disk cannot be read now", { reason: describeError(error) })
      return { delivered: 0 }
    })
    let { delivered, reason } = saved
    for (const one of saved.reason === undefined ? tried : []) {
      const result = await deliverRecord(one, state, reject)
      if (typeof result === "object") {
        reason = result.stop
        break
      }
      if (result === "delivered") delivered += 1
      if (result !== "refused") unsaved.splice(unsaved.indexOf(one), 1)
    }
    const left = tried.filter((one) => unsaved.includes(one))
    for (const { record } of left) {
      const entry = cutText(JSON.stringify(record.entry), 4000)
      const fields = { ...logFields(record.entry), ledger: reason, entry }
      log.error("a record is only in memory: neither disk nor ledger took it", fields)
    }
    return { delivered, ...(left.length > 0 ? { reason: ONLY_IN_MEMORY } : {}) }
  }

  const drain = async (): Promise<DrainResult> => {
    await saveUnsaved()
    const first = unsaved.length > 0 ? await drainUnsaved() : { delivered: 0 }
    if (first.reason !== undefined || (await store.list()).length === 0) return first
    const lock = await tryLock()
    if (!lock) return { ...first, reason: LOCK_TAKEN }
    try {
      const { delivered, ...rest } = await drainSaved({ cache: new Map(), blocked: new Map() }, lock.isHeld)
      return { delivered: first.delivered + delivered, ...rest }
    } finally {
      await lock.release()
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
/**
 * A program may outlive the killed process that started it: prog waits 5 s for a locked database, and a call is killed 6 s after
 * its start. So a dead holder keeps the lock for that long after its last heartbeat.
 */
const LOCK_TIMES = { heartbeatMs: 1000, graceMs: 8000 }
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
  /** Resolves when the work that requests wait for is done; a delivery begins no earlier. */
  readonly firstDone?: () => Promise<unknown>
  readonly firstRetryMs?: number
  readonly longestRetryMs?: number
  readonly lockGraceMs?: number
}

const pause = (ms: number): Promise<void> =>
  new Promise((resolve) => {
    setTimeout(resolve, ms).unref()
  })

/** The lock of the process that delivers. */
export const createOutboxLock = ({ lockPath }: Pick<OutboxStore, "lockPath">, graceMs = LOCK_TIMES.graceMs) =>
  createFileLock({ ...LOCK_TIMES, graceMs, path: lockPath })

/**
 * Creates the outbox of one project, in `.opencode/state/outbox/`; see docs/outbox.md. Does nothing before its first call.
 * Several outboxes, in one or several processes, may share the folder.
 */
export const createOutbox = (deps: OutboxDeps): Outbox => {
  const { ledger, state, log, ids = () => randomBytes(4).toString("hex") } = deps
  const { firstRetryMs = FIRST_RETRY_MS, longestRetryMs = LONGEST_RETRY_MS } = deps
  const now = () => (deps.now?.() ?? new Date()).getTime()
  const store = createOutboxStore(state)
  const lock = createOutboxLock(store, deps.lockGraceMs)
  const unsaved: Unsaved[] = []
  let stopped = false
  const drain = createDrain({
    store,
    tryLock: lock.tryAcquire,
    deliver: createDelivery({ ledger, ensureSigner }),
    unsaved,
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

  const scheduleRetry = ({ reason }: DrainResult): void => {
    clearTimeout(retry)
    retry = undefined
    if (reason === undefined || stopped) return
    const backoffMs = reason === LOCK_TAKEN ? firstRetryMs : firstRetryMs * 2 ** Math.min(failures - 1, 20)
    retry = setTimeout(() => void drainOnce(), Math.min(backoffMs, longestRetryMs))
    retry.unref()
  }

  const drainUntilDone = async (): Promise<DrainResult> => {
    let drained: DrainResult
    do {
      wanted = false
      await deps.firstDone?.()
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

  const save = async (entry: OutboxEntry): Promise<void> => {
    const record: OutboxRecord = { version: 1, createdAt: new Date(now()).toISOString(), entry }
    const name = await store.nextName(now(), ids(), entry)
    // Behind earlier ones, not before them.
    const refusal = unsaved.at(-1)?.refusal ?? (await store.write(name, record))
    if (refusal === undefined) return
    unsaved.push({ name, record, refusal })
    const fields = { ...logFields(entry), reason: refusal }
    log.warn("the outbox cannot be written: the record goes to the ledger directly", fields)
  }

  const readWaiting = async (key: string): Promise<OutboxEntry[]> => {
    const found: OutboxEntry[] = []
    for (const name of await store.list(key)) {
      const read = await store.read(name)
      if (read.kind === "record" && orderingKey(read.record.entry) === key) found.push(read.record.entry)
    }
    return found
  }

  const findWaiting = async (key: string): Promise<OutboxEntry[] | undefined> => {
    try {
      return await readWaiting(key)
    } catch (error) {
      log.warn("cannot tell what waits in the outbox", { key, reason: describeError(error) })
      return undefined
    }
  }

  return {
    add: async (entry) => {
      saving = saving.then(() => save(entry))
      await saving
      void drainOnce()
    },
    pending: findWaiting,
    drain: async () => {
      await drainOnce()
    },
    flush: async (waitMs, unsavedMs = waitMs) => {
      await withDeadline(saving, waitMs)
      const deadlineMs = unsaved.length > 0 ? unsavedMs : waitMs
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
        return {
          waiting: waiting.length + unsaved.length,
          parked,
          ...(lastFailure === undefined ? {} : { lastFailure }),
        }
      } catch (error) {
        return { waiting: unsaved.length, parked: [], lastFailure: describeError(error) }
      }
    },
    stop: () => {
      stopped = true
      clearTimeout(retry)
    },
  }
}
