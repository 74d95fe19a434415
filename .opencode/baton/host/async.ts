type Timed<T> = { kind: "done"; value: T } | { kind: "late" } | { kind: "failed"; error: unknown }

/**
 * Waits for `work` at most `deadlineMs`. Never rejects.
 *
 * The work is not stopped: a caller that needs that passes it an AbortSignal or a deadline.
 *
 * @param deadlineMs `Number.POSITIVE_INFINITY` for none
 */
export const withDeadline = async <T>(work: Promise<T>, deadlineMs: number): Promise<Timed<T>> => {
  const settled: Promise<Timed<T>> = work.then(
    (value) => ({ kind: "done", value }),
    (error: unknown) => ({ kind: "failed", error }),
  )
  if (deadlineMs === Number.POSITIVE_INFINITY) return settled
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

/** Calls `act` after `ms`, unless the returned function is called before. It keeps no process alive. */
export type StartTimer = (ms: number, act: () => void) => () => void

export const startTimer: StartTimer = (ms, act) => {
  const timer = setTimeout(act, ms)
  timer.unref()
  return () => clearTimeout(timer)
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

/** Resolves with the first of these; as stopped at the abort. The work itself is not stopped. */
export const raceWithAbort = async <T>(
  promises: readonly Promise<T>[],
  signal: AbortSignal,
): Promise<T | { readonly kind: "stopped" }> => {
  const stopped = createDeferred<{ readonly kind: "stopped" }>()
  const stop = (): void => stopped.resolve({ kind: "stopped" })
  signal.addEventListener("abort", stop, { once: true })
  if (signal.aborted) stop()
  try {
    return await Promise.race([...promises, stopped.promise])
  } finally {
    signal.removeEventListener("abort", stop)
  }
}

/** Loads once, at the first use. After a failure the next use tries again. */
export type Lazy<T> = (() => Promise<T>) & {
  /** The loaded or loading value, without starting the load; undefined after a failure. */
  readonly current: Promise<T | undefined> | undefined
  /** Resolves when it is loaded, without starting the load. */
  readonly loaded: Promise<T>
}

export const lazy = <T>(load: () => Promise<T>): Lazy<T> => {
  let loading: Promise<T> | undefined
  let current: Promise<T | undefined> | undefined
  const loaded = createDeferred<T>()
  const get = (): Promise<T> => {
    if (loading) return loading
    loading = load()
    loading.then(loaded.resolve, () => {})
    current = loading.catch(() => {
      loading = undefined
      current = undefined
      return undefined
    })
    return loading
  }
  return Object.defineProperties(get, { current: { get: () => current }, loaded: { value: loaded.promise } }) as Lazy<T>
}

export type KeyedQueue = ReturnType<typeof createKeyedQueue>

/** Runs the work of one key in order, and different keys in parallel. */
export const createKeyedQueue = () => {
  const last = new Map<string, Promise<void>>()
  return {
    /** @returns the result of the work; a failure does not block the work after it */
    add: <T>(key: string, work: () => Promise<T>): Promise<T> => {
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
    /** Resolves when all work added for the key has ended, failed or not. */
    idle: async (key: string): Promise<void> => {
      // More work may be added while this waits.
      for (let all = last.get(key); all; all = last.get(key)) await all
    },
  }
}

/** More sessions than one server works on at once; dropped entries are read again from disk. */
const MAX_SESSIONS = 500

export type LruMap<Value> = ReturnType<typeof createLruMap<Value>>

/**
 * A map with a size limit, so that a server's memory does not grow with every session. Past `limit` the entry that was read
 * or set least recently is dropped.
 *
 * @param onEvict called for dropped entries, not for deleted ones
 */
export const createLruMap = <Value>({
  limit = MAX_SESSIONS,
  onEvict,
}: {
  limit?: number
  onEvict?: (key: string, value: Value) => void
} = {}) => {
  const values = new Map<string, Value>()
  return {
    get: (key: string): Value | undefined => {
      const value = values.get(key)
      if (value === undefined) return undefined
      // A Map keeps the order of insertion: this one is now the newest.
      values.delete(key)
      values.set(key, value)
      return value
    },
    has: (key: string): boolean => values.has(key),
    set: (key: string, value: Value): void => {
      values.delete(key)
      values.set(key, value)
      if (values.size <= limit) return
      for (const [oldest, dropped] of values) {
        values.delete(oldest)
        onEvict?.(oldest, dropped)
        return
      }
    },
    delete: (key: string): boolean => values.delete(key),
    values: (): Iterable<Value> => values.values(),
  }
}
