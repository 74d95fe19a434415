import { randomBytes } from "node:crypto"
import { rmSync, statSync, utimesSync } from "node:fs"
import { setTimeout as wait } from "node:timers/promises"
import { errorCode } from "./log.ts"
import { hasEnded, ownStart, readHost } from "./process-identity.ts"
import { createExclusively, removeQuietly, TEMPORARY } from "./state-mark.ts"
import { readOwnTextSync } from "./untrusted.ts"

/** Milliseconds between two heartbeats of a holder, and from the last one until its lock is stale. */
const HEARTBEAT_MS = 5000
const STALE_AFTER_MS = 60_000
/** A claim of this age was left by a killed process: a takeover takes microseconds. */
const CLAIM_MS = 5000
const MAX_LOCK_BYTES = 4096
/** Allowed difference between a file's time stamp and the clock. */
const CLOCK_SLACK_MS = 2000

export type HeldLock = {
  /** False once the lock is lost, as after a long suspension of the process. */
  isHeld(): Promise<boolean>
  /** Never rejects. If the file cannot be removed, this process can lock again at once, others when the lock is stale. */
  release(): Promise<void>
}

type Owner = {
  readonly token: string
  readonly pid: number
  readonly host: string
  /** Start time of the process; "" where it is unknown. */
  readonly startedAt: string
}

type FileLockDeps = {
  readonly path: string
  readonly now?: () => number
  readonly heartbeatMs?: number
  readonly staleAfterMs?: number
  /** A dead holder keeps its lock for that long after its last sign of life: a program that it started may live on. */
  readonly graceMs?: number
}

const readOwner = (path: string): { owner: Owner; touchedAt: number } | undefined => {
  try {
    const text = readOwnTextSync(path, { maxBytes: MAX_LOCK_BYTES })
    const { mtimeMs } = statSync(path)
    const [token = "", pid = "", host = "", startedAt = ""] = text.split("\n")
    // A crash cut its creation short: only its age is known.
    const cut = { token: `cut-${mtimeMs}`, pid: 0, host: "", startedAt: "" }
    const owner = host === "" ? cut : { token, pid: Number(pid), host, startedAt }
    return { owner, touchedAt: mtimeMs }
  } catch (error) {
    if (errorCode(error) === "ENOENT") return undefined
    throw error
  }
}

/**
 * A lock between processes, as a file. A dead holder is detected by its pid and start time, however long it was
 * silent: it may be suspended. Missing heartbeats count where it runs in another container, or its start time is unknown.
 *
 * A takeover needs a claim on the dead holder's token: only one process succeeds, and a newer lock is never removed. The file
 * is small, so it is read and written synchronously (see state.ts).
 */
export const createFileLock = (deps: FileLockDeps) => {
  const { path, now = Date.now, heartbeatMs = HEARTBEAT_MS, staleAfterMs = STALE_AFTER_MS, graceMs = 0 } = deps
  const host = readHost()
  /** Token of a released lock whose file could not be removed, for example because the folder was unavailable. */
  let released: string | undefined

  const isStale = ({ owner, touchedAt }: { owner: Owner; touchedAt: number }): boolean => {
    if (owner.token === released) return true
    // A time ahead of the clock, which was set back, ages too.
    const silentMs = Math.abs(now() - touchedAt)
    if (silentMs < graceMs) return false
    const isSilent = silentMs > staleAfterMs
    if (owner.host !== host) return isSilent
    const isGone = hasEnded(owner.pid, owner.startedAt)
    if (isGone !== undefined) return isGone
    // In a container a restarted process often has the same pid as before.
    const isEarlier = touchedAt < now() - process.uptime() * 1000 - CLOCK_SLACK_MS
    return isSilent || (owner.pid === process.pid && isEarlier)
  }

  /** Replaces a dead holder. If several processes try, one succeeds. */
  const takeOver = (dead: Owner, text: string): boolean => {
    // Named like a temporary file, so that a claim left by a killed process is swept with them.
    const claim = `${path}.${dead.token}.claim${TEMPORARY}`
    if (!createExclusively(claim, text)) {
      const claimed = readOwner(claim)
      if (claimed && Math.abs(now() - claimed.touchedAt) > CLAIM_MS) removeQuietly(claim)
      return false
    }
    try {
      if (readOwner(path)?.owner.token === dead.token) rmSync(path, { force: true })
    } finally {
      removeQuietly(claim)
    }
    return createExclusively(path, text)
  }

  const acquire = (text: string): boolean => {
    if (createExclusively(path, text)) return true
    const current = readOwner(path)
    if (!current) return createExclusively(path, text)
    return isStale(current) && takeOver(current.owner, text)
  }

  const hold = (token: string): HeldLock => {
    const isHeld = (): boolean => readOwner(path)?.owner.token === token
    const beat = (): void => {
      const time = new Date(now())
      try {
        if (isHeld()) utimesSync(path, time, time)
      } catch {
        // A failed heartbeat makes the lock look older; `isHeld` tells if the lock was lost.
      }
    }
    const timer = setInterval(beat, heartbeatMs)
    timer.unref()
    return {
      isHeld: async () => isHeld(),
      release: async () => {
        clearInterval(timer)
        released = token
        try {
          if (isHeld()) rmSync(path, { force: true })
        } catch {
          // The folder is unavailable or read-only.
        }
      },
    }
  }

  return {
    /** Held by a live process; asked without taking it. */
    isTaken: async (): Promise<boolean> => {
      const current = readOwner(path)
      return current !== undefined && !isStale(current)
    },
    tryAcquire: async (): Promise<HeldLock | undefined> => {
      const token = randomBytes(8).toString("hex")
      const text = `${token}\n${process.pid}\n${host}\n${ownStart()}\n`
      return acquire(text) ? hold(token) : undefined
    },
  }
}

type FileLock = ReturnType<typeof createFileLock>

const RETRY_MS = 20

/** Waits for a lock. @returns undefined when another process holds it for longer than that */
export const acquireWithin = async (lock: FileLock, deadlineMs: number): Promise<HeldLock | undefined> => {
  for (const end = performance.now() + deadlineMs; ; await wait(RETRY_MS)) {
    const held = await lock.tryAcquire()
    if (held || performance.now() > end) return held
  }
}
