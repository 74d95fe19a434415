import { setTimeout as wait } from "node:timers/promises"
import { createFileLock, type HeldLock } from "../../host/file-lock.ts"

const RETRY_MS = 25

type PassLocks = {
  /** Locks a pass while its child works; false when another process holds it. */
  keep(passID: string, path: string): Promise<boolean>
  letGo(passID: string): Promise<void>
  /** Runs work under the pass's lock; "busy" when another process holds the lock longer than the wait. */
  during<T>(passID: string, path: string, work: () => Promise<T>): Promise<T | "busy">
}

/** Locks of passes: across processes by a file; locks of working children are kept in this process. */
export const createPassLocks = ({ waitMs }: { waitMs: number }): PassLocks => {
  const kept = new Map<string, HeldLock>()
  /** Serialises this process's calls on a pass whose lock it keeps. */
  const queues = new Map<string, Promise<unknown>>()

  const inTurn = async <T>(passID: string, work: () => Promise<T>): Promise<T> => {
    const turn = (queues.get(passID) ?? Promise.resolve()).then(work, work)
    queues.set(passID, turn)
    try {
      return await turn
    } finally {
      if (queues.get(passID) === turn) queues.delete(passID)
    }
  }

  const acquire = async (path: string): Promise<HeldLock | undefined> => {
    const lock = createFileLock({ path })
    for (const over = performance.now() + waitMs; ; await wait(RETRY_MS)) {
      const held = await lock.tryAcquire()
      if (held || performance.now() > over) return held
    }
  }

  return {
    keep: async (passID, path) => {
      const held = await createFileLock({ path }).tryAcquire()
      if (held) kept.set(passID, held)
      return held !== undefined
    },
    letGo: async (passID) => {
      await kept.get(passID)?.release()
      kept.delete(passID)
    },
    during: async (passID, path, work) => {
      if (await kept.get(passID)?.isHeld()) return await inTurn(passID, work)
      const held = await acquire(path)
      if (held === undefined) return "busy"
      try {
        return await work()
      } finally {
        await held.release()
      }
    },
  }
}
