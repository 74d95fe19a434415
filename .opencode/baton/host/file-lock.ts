import { randomBytes } from "node:crypto"
import { linkSync, readFileSync, readlinkSync, rmSync, statSync, utimesSync, writeFileSync } from "node:fs"
import { hostname } from "node:os"
import { errorCode } from "./log.ts"
import { isAlive } from "./process.ts"
import { removeTemporary, TEMPORARY } from "./state.ts"

/** How often a holder says that it is there, and after how long a silent one is taken for dead. */
const HEARTBEAT_MS = 5000
const STALE_AFTER_MS = 60_000
/** Taking over takes microseconds: a claim of this age is one whose maker was killed in them. */
const CLAIM_MS = 5000
/** Between a file's time stamp and the clock. */
const CLOCK_SLACK_MS = 2000

export type HeldLock = {
  /** Whether it is still ours: a process that was suspended for long may have lost it. */
  isHeld(): Promise<boolean>
  /** Never rejects: a lock whose file cannot be removed now is free to whoever took it, and to others once it is silent. */
  release(): Promise<void>
}

type FileLock = {
  tryAcquire(): Promise<HeldLock | undefined>
  /** Whether somebody who is still there holds it. Only looks. */
  isTaken(): Promise<boolean>
}

type Owner = { readonly token: string; readonly pid: number; readonly host: string }

type FileLockDeps = {
  readonly path: string
  readonly now?: () => number
  readonly heartbeatMs?: number
  readonly staleAfterMs?: number
}

/** A pid means something only where it was given: containers share folders, not process ids. */
const readHost = (): string => {
  try {
    return `${hostname()} ${readlinkSync("/proc/self/ns/pid")}`
  } catch {
    // Only Linux has process namespaces.
    return hostname()
  }
}

const readOwner = (path: string): { owner: Owner; touchedAt: number } | undefined => {
  try {
    const text = readFileSync(path, "utf8")
    const { mtimeMs } = statSync(path)
    const [token = "", pid = "", host = ""] = text.split("\n")
    // Cut short by a crash in the middle of its creation: known by its age alone.
    const owner = host === "" ? { token: `cut-${mtimeMs}`, pid: 0, host: "" } : { token, pid: Number(pid), host }
    return { owner, touchedAt: mtimeMs }
  } catch (error) {
    if (errorCode(error) === "ENOENT") return undefined
    throw error
  }
}

/** File systems that know no hard links say one of these. */
const NO_LINKS = new Set(["EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS", "EMLINK"])

const writeExclusively = (path: string, text: string): boolean => {
  try {
    writeFileSync(path, text, { flag: "wx" })
    return true
  } catch (error) {
    if (errorCode(error) === "EEXIST") return false
    // Created, then not filled: on a full disk it would stand in everybody's way.
    if (errorCode(error) === "ENOSPC") removeTemporary(path)
    throw error
  }
}

/** The file is there with its whole text or not at all, also when this process is killed in the middle. */
const createExclusively = (path: string, text: string): boolean => {
  const whole = `${path}.${process.pid}-${randomBytes(4).toString("hex")}${TEMPORARY}`
  try {
    writeExclusively(whole, text)
    linkSync(whole, path)
    return true
  } catch (error) {
    if (errorCode(error) === "EEXIST") return false
    if (NO_LINKS.has(errorCode(error) ?? "")) return writeExclusively(path, text)
    throw error
  } finally {
    removeTemporary(whole)
  }
}

/**
 * A lock between processes, as a file. A holder that died is found at once by its pid; one whose pid belongs to another process
 * by now, or that lives in another container, by its silence. Taking over needs a claim on the dead holder's token, so that of
 * two who try, one succeeds, and neither removes a lock that is newer than the one it judged. Its few bytes are read and
 * written without waiting, like a small file's (state.ts).
 */
export const createFileLock = (deps: FileLockDeps): FileLock => {
  const { path, now = Date.now, heartbeatMs = HEARTBEAT_MS, staleAfterMs = STALE_AFTER_MS } = deps
  const host = readHost()
  /** The token of a lock that was released while its file could not be removed: the folder may have been away. */
  let released: string | undefined

  const isStale = ({ owner, touchedAt }: { owner: Owner; touchedAt: number }): boolean => {
    if (owner.token === released) return true
    if (now() - touchedAt > staleAfterMs) return true
    if (owner.host !== host) return false
    // In a container a restarted process often has the pid of the one before.
    const startedAt = now() - process.uptime() * 1000
    return owner.pid === process.pid ? touchedAt < startedAt - CLOCK_SLACK_MS : !isAlive(owner.pid)
  }

  /** Of several who judge the same holder dead, one takes its place. */
  const takeOver = (dead: Owner, text: string): boolean => {
    // Named like a half-written file, so that one which a kill left behind is swept with those.
    const claim = `${path}.${dead.token}.claim${TEMPORARY}`
    if (!createExclusively(claim, text)) {
      const claimed = readOwner(claim)
      if (claimed && now() - claimed.touchedAt > CLAIM_MS) removeTemporary(claim)
      return false
    }
    try {
      if (readOwner(path)?.owner.token === dead.token) rmSync(path, { force: true })
    } finally {
      removeTemporary(claim)
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
        // A beat that fails makes the lock look older than it is, and `isHeld` tells when that has cost it.
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
          // The folder is away, or nothing in it may be changed.
        }
      },
    }
  }

  return {
    isTaken: async () => {
      const current = readOwner(path)
      return current !== undefined && !isStale(current)
    },
    tryAcquire: async () => {
      const token = randomBytes(8).toString("hex")
      const text = `${token}\n${process.pid}\n${host}\n`
      return acquire(text) ? hold(token) : undefined
    },
  }
}
