/** So many sessions at once is more than a person or a server has at work; what falls out is found again on disk. */
const MAX_SESSIONS = 500

export type RecentMap<Value> = {
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
export const createRecentMap = <Value>({
  limit = MAX_SESSIONS,
  release,
}: {
  limit?: number
  release?: (key: string, value: Value) => void
} = {}): RecentMap<Value> => {
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
