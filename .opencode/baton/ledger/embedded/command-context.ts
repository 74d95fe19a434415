import { type CommandContext, CommandError } from "./command.ts"
import type { LedgerStore } from "./store.ts"
import { StoreError } from "./store-error.ts"
import { formatTimestamp } from "./timestamps.ts"

export type ContextDeps = {
  /** Opens the store; called once, by the first command that needs it. */
  readonly openStore: () => LedgerStore
  readonly readStdin: () => string
  /** Milliseconds since 1970. */
  readonly nowMs: () => number
  /** From createClock. */
  readonly timestamp: () => string
}

/** Now in the stored form, in local time; it rises strictly, so that what is written later sorts later. */
export const createClock = (nowMs: () => number): (() => string) => {
  let lastMicros = 0
  return () => {
    const now = nowMs()
    lastMicros = Math.max(now * 1000, lastMicros + 1)
    return formatTimestamp(lastMicros, -new Date(now).getTimezoneOffset())
  }
}

const ID_BYTES = 3

const randomHex = (): string =>
  Array.from(crypto.getRandomValues(new Uint8Array(ID_BYTES)), (byte) => byte.toString(16).padStart(2, "0")).join("")

/** A store that does not open is no failure of the step that first needed it. */
const openOrRefuse = (openStore: () => LedgerStore): LedgerStore => {
  try {
    return openStore()
  } catch (error) {
    if (error instanceof StoreError) throw new CommandError("store", error.message, error)
    throw error
  }
}

/** What one command line may use of the world. */
export const createCommandContext = (deps: ContextDeps): CommandContext => {
  let store: LedgerStore | undefined
  return {
    store: () => {
      store ??= openOrRefuse(deps.openStore)
      return store
    },
    timestamp: deps.timestamp,
    nowMs: deps.nowMs,
    newId: (prefix) => `${prefix}-${randomHex()}`,
    readStdin: deps.readStdin,
  }
}
