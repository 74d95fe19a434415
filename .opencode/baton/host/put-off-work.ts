/** Between the parameters of a session's request, or of the title's before it, and the moment when OpenCode waits for the answer. */
const ON_ITS_WAY_MS = 20
/** No request may follow, or one that is long in coming: by then the work has begun. */
export const PUT_OFF_AT_MOST_MS = 1_000

/**
 * Work that a user's message asks for and that its request does not need: OpenCode and its plugins share one thread, so that
 * all that is done before the request makes the user wait.
 *
 * What must not be lost has to be found again by the next process: OpenCode 1.2.15 ends `opencode run` without a word to its
 * plugins, and a request that is refused at once leaves no time.
 */
export type PutOffWork = {
  /** @param work never rejects */
  add(work: () => Promise<void>): void
  /** A request will be on its way in a moment. */
  requestPrepared(): void
  /** Ends when all that was added is done, in its order. Never rejects. */
  settle(): Promise<void>
}

/** @param options `onItsWayMs`: how long after its parameters a request is taken to be on its way (default 20) */
export const createPutOffWork = ({ onItsWayMs = ON_ITS_WAY_MS }: { onItsWayMs?: number } = {}): PutOffWork => {
  let waiting: (() => Promise<void>)[] = []
  let last: Promise<void> = Promise.resolve()
  const timers = new Set<ReturnType<typeof setTimeout>>()
  const settle = (): Promise<void> => {
    for (const work of waiting) last = last.then(work)
    waiting = []
    for (const timer of timers) clearTimeout(timer)
    timers.clear()
    return last
  }
  const settleIn = (ms: number): void => {
    const timer = setTimeout(() => void settle(), ms)
    timer.unref()
    timers.add(timer)
  }
  return {
    add: (work) => {
      waiting.push(work)
      settleIn(PUT_OFF_AT_MOST_MS)
    },
    requestPrepared: () => {
      if (waiting.length > 0) settleIn(onItsWayMs)
    },
    settle,
  }
}
