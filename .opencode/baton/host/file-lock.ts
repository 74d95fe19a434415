import { randomBytes } from "node:crypto"
import { readlinkSync } from "node:fs"
import { link, readFile, rm, stat, utimes, writeFile } from "node:fs/promises"
import { hostname } from "node:os"
import { errorCode } from "./error-code.ts"
import { isAlive } from "./process-table.ts"
import { TEMPORARY } from "./replace-file.ts"

/** How often a holder says that it is there, and after how long a silent one is taken for dead. */
const HEARTBEAT_MS = 5000
const STALE_AFTER_MS = 60_000
/** Each level needs another process killed within the same few milliseconds. */
const MAX_LEVELS = 4
/** Between a file's time stamp and the clock. */
const CLOCK_SLACK_MS = 2000

export type HeldLock = {
  /** Whether it is still ours: a process that was suspended for long may have lost it. */
  isHeld(): Promise<boolean>
  release(): Promise<void>
}

export type FileLock = {
  tryAcquire(): Promise<HeldLock | undefined>
  /** Whether somebody who is still there holds it. Only looks. */
  isTaken(): Promise<boolean>
}

type Owner = { readonly token: string; readonly pid: number; readonly host: string }

export type FileLockDeps = {
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

const readOwner = async (path: string): Promise<{ owner: Owner; touchedAt: number } | undefined> => {
  try {
    const [text, { mtimeMs }] = await Promise.all([readFile(path, "utf8"), stat(path)])
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

const writeExclusively = async (path: string, text: string): Promise<boolean> => {
  try {
    await writeFile(path, text, { flag: "wx" })
    return true
  } catch (error) {
    if (errorCode(error) === "EEXIST") return false
    // Created, then not filled: on a full disk it would stand in everybody's way.
    if (errorCode(error) === "ENOSPC") await rm(path, { force: true })
    throw error
  }
}

/** The file is there with its whole text or not at all, also when this process is killed in the middle. */
const createExclusively = async (path: string, text: string): Promise<boolean> => {
  const whole = `${path}.${process.pid}-${randomBytes(4).toString("hex")}${TEMPORARY}`
  try {
    await writeExclusively(whole, text)
    await link(whole, path)
    return true
  } catch (error) {
    if (errorCode(error) === "EEXIST") return false
    if (NO_LINKS.has(errorCode(error) ?? "")) return writeExclusively(path, text)
    throw error
  } finally {
    await rm(whole, { force: true })
  }
}

/**
 * A lock between processes, as a file. A holder that died is found at once by its pid; one whose pid belongs to somebody
 * else by now, or that lives in another container, by its silence. Taking over is a claim on the dead holder's token, so
 * that of two who try, one succeeds, and neither removes a lock that is newer than the one it judged. A claim is a lock like
 * any other, so that a claimant that died in the middle is found in the same way.
 */
export const createFileLock = (deps: FileLockDeps): FileLock => {
  const { path, now = Date.now, heartbeatMs = HEARTBEAT_MS, staleAfterMs = STALE_AFTER_MS } = deps
  const host = readHost()

  const isStale = ({ owner, touchedAt }: { owner: Owner; touchedAt: number }): boolean => {
    if (now() - touchedAt > staleAfterMs) return true
    if (owner.host !== host) return false
    // In a container a restarted process often has the pid of the one before.
    const startedAt = now() - process.uptime() * 1000
    return owner.pid === process.pid ? touchedAt < startedAt - CLOCK_SLACK_MS : !isAlive(owner.pid)
  }

  /** @param levels how many dead claimants of claims may be found on top of each other */
  const acquire = async (place: string, text: string, levels: number): Promise<boolean> => {
    if (await createExclusively(place, text)) return true
    const current = await readOwner(place)
    if (current && !isStale(current)) return false
    if (current && levels === 0) return false
    if (current) await removeStale(place, current.owner.token, text, levels - 1)
    return createExclusively(place, text)
  }

  const removeStale = async (place: string, token: string, text: string, levels: number): Promise<void> => {
    // Named like a half-written file, so that one which a kill left behind is swept with those.
    const claim = `${place}.${token}.claim${TEMPORARY}`
    if (!(await acquire(claim, text, levels))) return
    try {
      const current = await readOwner(place)
      if (current?.owner.token === token) await rm(place, { force: true })
    } finally {
      await rm(claim, { force: true })
    }
  }

  const hold = (token: string): HeldLock => {
    const isHeld = async (): Promise<boolean> => (await readOwner(path))?.owner.token === token
    const beat = async (): Promise<void> => {
      const time = new Date(now())
      if (await isHeld()) await utimes(path, time, time)
    }
    // A beat that fails makes the lock look older than it is, and `isHeld` tells when that has cost it.
    const timer = setInterval(() => void beat().catch(() => {}), heartbeatMs)
    timer.unref()
    return {
      isHeld,
      release: async () => {
        clearInterval(timer)
        if (await isHeld()) await rm(path, { force: true })
      },
    }
  }

  return {
    isTaken: async () => {
      const current = await readOwner(path)
      return current !== undefined && !isStale(current)
    },
    tryAcquire: async () => {
      const token = randomBytes(8).toString("hex")
      const text = `${token}\n${process.pid}\n${host}\n`
      return (await acquire(path, text, MAX_LEVELS)) ? hold(token) : undefined
    },
  }
}
