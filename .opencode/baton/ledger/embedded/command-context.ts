import type { CommandContext } from "./command.ts"
import type { LedgerStore } from "./store.ts"
import { formatTimestamp } from "./timestamps.ts"

export type ContextDeps = {
  /** Opens the store; called once, by the first command that needs it. */
  readonly openStore: () => LedgerStore
  readonly readStdin: () => string
  /** Milliseconds since 1970. */
  readonly nowMs: () => number
}

const ID_BYTES = 3

const randomHex = (): string =>
  Array.from(crypto.getRandomValues(new Uint8Array(ID_BYTES)), (byte) => byte.toString(16).padStart(2, "0")).join("")

/** A context for one command or for many; its timestamps rise strictly, so that what is written later sorts later. */
export const createCommandContext = (deps: ContextDeps): CommandContext => {
  let store: LedgerStore | undefined
  let lastMicros = 0
  return {
    store: () => {
      store ??= deps.openStore()
      return store
    },
    timestamp: () => {
      const nowMs = deps.nowMs()
      lastMicros = Math.max(nowMs * 1000, lastMicros + 1)
      return formatTimestamp(lastMicros, -new Date(nowMs).getTimezoneOffset())
    },
    nowMs: deps.nowMs,
    newId: (prefix) => `${prefix}-${randomHex()}`,
    readStdin: deps.readStdin,
  }
}
