import { createFileLock, type HeldLock } from "../host/file-lock.ts"
import type { StateFolder } from "../host/state.ts"

/** Which process works on a pass, so that another one can tell a pass that is worked on from one that was left. */
export type PassOwners = {
  claim(passID: string): Promise<void>
  release(passID: string): Promise<void>
  /** Whether a process that is still there works on it. */
  isOwned(passID: string): Promise<boolean>
}

export const createPassOwners = (state: Pick<StateFolder, "path" | "prepare">): PassOwners => {
  const held = new Map<string, HeldLock>()
  const lockOf = (passID: string) => createFileLock({ path: state.path("pass-over", passID, "work.lock") })
  return {
    claim: async (passID) => {
      await state.prepare("pass-over", passID)
      const lock = await lockOf(passID).tryAcquire()
      if (lock) held.set(passID, lock)
    },
    release: async (passID) => {
      await held.get(passID)?.release()
      held.delete(passID)
    },
    isOwned: (passID) => lockOf(passID).isTaken(),
  }
}
