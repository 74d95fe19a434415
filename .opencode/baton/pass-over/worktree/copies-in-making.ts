import { createDeferredQueue, type DeferredQueue } from "../../host/async.ts"
import type { Refusal } from "./worktree.ts"

/** What a copy is when its pass is over: nobody was ever let into it, or it may have been worked in. */
type LeftCopy = "untouched" | "used"

/**
 * Copies of passes while they are made: when the child's first request is on its way, so that its model thinks meanwhile.
 * Whoever wants to work in one before waits for it.
 */
type CopiesInMaking = {
  /**
   * @param make ends when the copy is made; with a refusal when it cannot be. Never rejects
   * @returns ends with the same, or with nothing for a copy that nobody wanted
   */
  begin(passID: string, make: (signal: AbortSignal) => Promise<Refusal | undefined>): Promise<Refusal | undefined>
  /** The child's request will be on its way in a moment. */
  requestPrepared(passID: string): void
  /** Lets somebody in: ends when the copy is made. @returns why it could not be */
  enter(passID: string): Promise<Refusal | undefined>
  /** Ends when the copy is made, or cannot be. */
  complete(passID: string): Promise<void>
  /** Nobody is let in any more; a copy that nobody wanted is not made to its end. */
  leave(passID: string): Promise<LeftCopy>
}

/** Hardly a model answers sooner, and a child that only answers needs no copy. */
const FIRST_THOUGHT_MS = 100

type Making = {
  readonly putOff: DeferredQueue
  readonly made: Promise<Refusal | undefined>
  readonly stopping: AbortController
  isEntered: boolean
}

export const createCopiesInMaking = (): CopiesInMaking => {
  const makings = new Map<string, Making>()
  const complete = async (making: Making | undefined): Promise<Refusal | undefined> => {
    await making?.putOff.flush()
    return await making?.made
  }
  return {
    begin: (passID, make) => {
      const putOff = createDeferredQueue({ onItsWayMs: FIRST_THOUGHT_MS })
      const stopping = new AbortController()
      const made = new Promise<Refusal | undefined>((resolve) => {
        putOff.add(async () => resolve(stopping.signal.aborted ? undefined : await make(stopping.signal)))
      })
      makings.set(passID, { putOff, made, stopping, isEntered: false })
      return made
    },
    requestPrepared: (passID) => makings.get(passID)?.putOff.requestStarting(),
    enter: async (passID) => {
      const making = makings.get(passID)
      if (making) making.isEntered = true
      return await complete(making)
    },
    complete: async (passID) => {
      await complete(makings.get(passID))
    },
    leave: async (passID) => {
      const making = makings.get(passID)
      // Of an earlier process, or left before.
      if (!making) return "used"
      makings.delete(passID)
      if (!making.isEntered) making.stopping.abort(new Error("nobody needs the copy any more"))
      await complete(making)
      return making.isEntered ? "used" : "untouched"
    },
  }
}
