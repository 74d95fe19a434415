type Timed<T> = { kind: "done"; value: T } | { kind: "late" } | { kind: "failed"; error: unknown }

/**
 * Waits for `work` no longer than `deadlineMs` and never rejects.
 *
 * The work itself is not stopped: whoever needs that passes it an AbortSignal or a deadline of its own.
 */
export const withDeadline = async <T>(work: Promise<T>, deadlineMs: number): Promise<Timed<T>> => {
  const settled: Promise<Timed<T>> = work.then(
    (value) => ({ kind: "done", value }),
    (error: unknown) => ({ kind: "failed", error }),
  )
  let timer: ReturnType<typeof setTimeout> | undefined
  const late = new Promise<Timed<T>>((resolve) => {
    timer = setTimeout(() => resolve({ kind: "late" }), deadlineMs)
  })
  try {
    return await Promise.race([settled, late])
  } finally {
    clearTimeout(timer)
  }
}

export type Deferred<T> = { readonly promise: Promise<T>; readonly resolve: (value: T) => void }

/** `Promise.withResolvers`, which Node has from 22 on. */
export const createDeferred = <T>(): Deferred<T> => {
  let resolve = (_value: T): void => {}
  const promise = new Promise<T>((settle) => {
    resolve = settle
  })
  return { promise, resolve }
}

/** Loads at first use, and once; what failed is tried again at the next use. */
export type Lazy<T> = (() => Promise<T>) & {
  /** What is loaded or being loaded, without loading it; nothing when that failed. */
  readonly current: Promise<T | undefined> | undefined
}

export const lazy = <T>(load: () => Promise<T>): Lazy<T> => {
  let loading: Promise<T> | undefined
  let current: Promise<T | undefined> | undefined
  const get = (): Promise<T> => {
    if (loading) return loading
    loading = load()
    current = loading.catch(() => {
      loading = undefined
      current = undefined
      return undefined
    })
    return loading
  }
  return Object.defineProperty(get, "current", { get: () => current }) as Lazy<T>
}

/** Between the parameters of a session's request, or of the title's before it, and the moment when OpenCode waits for the answer. */
const ON_ITS_WAY_MS = 20
/** No request may follow, or one that is long in coming: by then the work has begun. */
export const DEFERRED_AT_MOST_MS = 1_000

/**
 * Work that a user's message asks for and that its request does not need: OpenCode and its plugins share one thread, so that
 * all that is done before the request makes the user wait.
 *
 * What must not be lost has to be found again by the next process: OpenCode 1.2.15 ends `opencode run` without a word to its
 * plugins, and a request that is refused at once leaves no time.
 */
export type DeferredQueue = {
  /** @param work never rejects */
  add(work: () => Promise<void>): void
  /** A request will be on its way in a moment. */
  requestStarting(): void
  /** Ends when all that was added is done, in its order. Never rejects. */
  flush(): Promise<void>
}

/** @param options `onItsWayMs`: how long after its parameters a request is taken to be on its way (default 20) */
export const createDeferredQueue = ({ onItsWayMs = ON_ITS_WAY_MS }: { onItsWayMs?: number } = {}): DeferredQueue => {
  let waiting: (() => Promise<void>)[] = []
  let last: Promise<void> = Promise.resolve()
  const timers = new Set<ReturnType<typeof setTimeout>>()
  const flush = (): Promise<void> => {
    for (const work of waiting) last = last.then(work)
    waiting = []
    for (const timer of timers) clearTimeout(timer)
    timers.clear()
    return last
  }
  const flushIn = (ms: number): void => {
    const timer = setTimeout(() => void flush(), ms)
    timer.unref()
    timers.add(timer)
  }
  return {
    add: (work) => {
      waiting.push(work)
      flushIn(DEFERRED_AT_MOST_MS)
    },
    requestStarting: () => {
      if (waiting.length > 0) flushIn(onItsWayMs)
    },
    flush,
  }
}

/** Work of one key in its order; different keys side by side. */
export type KeyedQueue = {
  /** @returns what the work gives; its failure holds up nothing */
  add<T>(key: string, work: () => Promise<T>): Promise<T>
  /** Resolves when all that was added for the key is over, failed or not. */
  idle(key: string): Promise<void>
}

export const createKeyedQueue = (): KeyedQueue => {
  const last = new Map<string, Promise<void>>()
  return {
    add: (key, work) => {
      const mine = (last.get(key) ?? Promise.resolve()).then(work)
      const over: Promise<void> = mine.then(
        () => {},
        () => {},
      )
      last.set(key, over)
      void over.then(() => {
        if (last.get(key) === over) last.delete(key)
      })
      return mine
    },
    idle: async (key) => {
      // More may be added while the rest ends.
      for (let all = last.get(key); all; all = last.get(key)) await all
    },
  }
}

/** So many sessions at once is more than a person or a server has at work; what falls out is found again on disk. */
const MAX_SESSIONS = 500

export type LruMap<Value> = {
  get(key: string): Value | undefined
  has(key: string): boolean
  set(key: string, value: Value): void
  delete(key: string): boolean
}

/**
 * What is remembered by session, so that a server's memory does not grow with every session it ever had: past `limit`
 * the one that was not asked for or set for longest falls out.
 *
 * @param release is told of what falls out; not of what is deleted
 */
export const createLruMap = <Value>({
  limit = MAX_SESSIONS,
  release,
}: {
  limit?: number
  release?: (key: string, value: Value) => void
} = {}): LruMap<Value> => {
  const values = new Map<string, Value>()
  return {
    get: (key) => {
      const value = values.get(key)
      if (value === undefined) return undefined
      // A Map keeps the order of insertion: this one is now the newest.
      values.delete(key)
      values.set(key, value)
      return value
    },
    has: (key) => values.has(key),
    set: (key, value) => {
      values.delete(key)
      values.set(key, value)
      if (values.size <= limit) return
      for (const [oldest, dropped] of values) {
        values.delete(oldest)
        release?.(oldest, dropped)
        return
      }
    },
    delete: (key) => values.delete(key),
  }
}
