type Maps = Map<string, Map<string, unknown>>

const SHARED = Symbol.for("baton.shared")

/**
 * A map of this name for the whole process. Module state is not: two copies of the bundle are two instances of a module, and OpenCode
 * 2 loads each plugin file with modules of its own.
 */
export const sharedMap = <Value>(name: string): Map<string, Value> => {
  const shared: typeof globalThis & { [SHARED]?: Maps } = globalThis
  shared[SHARED] ??= new Map()
  const found = shared[SHARED].get(name) ?? new Map<string, unknown>()
  shared[SHARED].set(name, found)
  return found as Map<string, Value>
}
