import { setTimeout as wait } from "node:timers/promises"
import { createFileLock, type HeldLock } from "../../host/file-lock.ts"

const RETRY_MS = 25

type PassLocks = {
  /** Takes a pass for as long as its child works; false when somebody else has it. */
  keep(passID: string, path: string): Promise<boolean>
  letGo(passID: string): Promise<void>
  /** Does something that nobody else may do with that pass meanwhile; "busy" when it is taken for longer than waited. */
  during<T>(passID: string, path: string, work: () => Promise<T>): Promise<T | "busy">
}

/** Locks of passes: across processes by a file, and within this process those that a child works under. */
export const createPassLocks = ({ waitMs }: { waitMs: number }): PassLocks => {
  const kept = new Map<string, HeldLock>()
  /** Calls of this process on a pass that it keeps come one after the other. */
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
