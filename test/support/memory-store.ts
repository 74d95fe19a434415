/** A store of a project's JSON files, in memory. */
export const createMemoryStore = <Value>(values = new Map<string, Value>()) => ({
  values,
  keys: async () => [...values.keys()],
  read: async (key: string) => values.get(key),
  write: async (key: string, value: Value) => Boolean(values.set(key, value)),
  remove: async (key: string) => void values.delete(key),
})

/** A store in memory whose writes end on command, the newest first, as those of a busy file system may. */
export const createSlowStore = <Value>() => {
  const store = createMemoryStore<Value>()
  const pending: (() => void)[] = []
  return {
    ...store,
    write: (key: string, value: Value) =>
      new Promise<boolean>((resolve) => pending.push(() => resolve(store.write(key, value)))),
    /** Ends one write after the other until none is left. */
    endWrites: async (): Promise<void> => {
      for (;;) {
        await new Promise((resolve) => setImmediate(resolve))
        const end = pending.pop()
        if (!end) return
        end()
      }
    },
  }
}
