export type Turn<T> =
  | { readonly kind: "ran"; readonly value: T }
  /** Earlier calls took the whole deadline. */
  | { readonly kind: "busy" }
  /** The program hung not long ago. */
  | { readonly kind: "resting"; readonly forMs: number }

/** One call at a time to the ledger of one directory, however many copies of the bundle ask. */
export type CallQueue = {
  /** Waits for its turn and runs the call with the milliseconds that are left of the deadline. */
  take<T>(deadlineMs: number, call: (remaining: () => number) => Promise<T>): Promise<Turn<T>>
  /** The program hung: leave it alone, longer each time. Gives for how many milliseconds. */
  rest(): number
  /** The program answered. */
  wake(): void
}

type Shared = { tail: Promise<void>; restUntil: number; rests: number }

export const FIRST_REST_MS = 30_000
export const LONGEST_REST_MS = 10 * 60_000
/** With less than this left, a call is not begun: it could only be killed in the middle. */
const LEAST_TIME_MS = 50

const QUEUES = Symbol.for("baton.ledger-queues")

/** On globalThis, because two copies of the bundle are two module instances and one ledger. */
const sharedState = (key: string): Shared => {
  const holder: typeof globalThis & { [QUEUES]?: Map<string, Shared> } = globalThis
  holder[QUEUES] ??= new Map()
  const known = holder[QUEUES].get(key)
  if (known) return known
  const made: Shared = { tail: Promise.resolve(), restUntil: 0, rests: 0 }
  holder[QUEUES].set(key, made)
  return made
}

const endsWithin = (promise: Promise<void>, ms: number): Promise<boolean> =>
  new Promise((resolve) => {
    const timer = setTimeout(() => resolve(false), ms)
    timer.unref()
    void promise.then(() => {
      clearTimeout(timer)
      resolve(true)
    })
  })

/** @param clock milliseconds that only go forward */
export const createCallQueue = (directory: string, clock: () => number = () => performance.now()): CallQueue => {
  const shared = sharedState(directory)
  const resting = (): { kind: "resting"; forMs: number } | undefined => {
    const forMs = shared.restUntil - clock()
    return forMs > 0 ? { kind: "resting", forMs } : undefined
  }
  return {
    take: async (deadlineMs, call) => {
      const before = resting()
      if (before) return before
      const endsAt = clock() + deadlineMs
      const turn = shared.tail
      let leave = () => {}
      const left = new Promise<void>((resolve) => {
        leave = resolve
      })
      shared.tail = turn.then(() => left)
      try {
        const came = await endsWithin(turn, deadlineMs)
        const remaining = () => Math.max(0, endsAt - clock())
        if (!came || remaining() < LEAST_TIME_MS) return { kind: "busy" }
        return resting() ?? { kind: "ran", value: await call(remaining) }
      } finally {
        leave()
      }
    },
    rest: () => {
      const forMs = Math.min(FIRST_REST_MS * 2 ** shared.rests, LONGEST_REST_MS)
      shared.rests += 1
      shared.restUntil = clock() + forMs
      return forMs
    },
    wake: () => {
      shared.rests = 0
      shared.restUntil = 0
    },
  }
}
