import { createDeferredQueue, type DeferredQueue } from "../../host/async.ts"
import type { Refusal } from "./worktree.ts"

/** State of a copy at the end of its pass: no tool was ever let in, or work may have been done in it. */
type LeftCopy = "untouched" | "used"

/**
 * Makes copies of passes in the background, while the child's first request runs and its model thinks. A tool that needs the copy
 * earlier waits for it.
 */
type CopiesInMaking = {
  /**
   * @param make resolves when the copy is made, or with a refusal. Never rejects
   * @returns resolves with the same, or with undefined for a copy that was not needed
   */
  begin(passID: string, make: (signal: AbortSignal) => Promise<Refusal | undefined>): Promise<Refusal | undefined>
  /** Called when the child's request is about to be sent. */
  requestPrepared(passID: string): void
  /** Lets a tool in; resolves when the copy is made. @returns the error of making it */
  enter(passID: string): Promise<Refusal | undefined>
  /** Resolves when the copy is made, or cannot be. */
  complete(passID: string): Promise<void>
  /** Closes the copy to tools; one that was not needed is not completed. */
  leave(passID: string): Promise<LeftCopy>
}

/** Hardly any model answers sooner, and a child that only answers needs no copy. */
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
      // Of an earlier process, or closed before.
      if (!making) return "used"
      makings.delete(passID)
      if (!making.isEntered) making.stopping.abort(new Error("nobody needs the copy any more"))
      await complete(making)
      return making.isEntered ? "used" : "untouched"
    },
  }
}
