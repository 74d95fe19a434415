import type { FlagSpec, Flags } from "./flags.ts"
import { formatTimestamp } from "./format.ts"
import { type LedgerStore, StoreError } from "./store.ts"

/** What a command may use of the world. The store opens at its first use, after the arguments are known to be good. */
export type CommandContext = {
  store(): LedgerStore
  /** Now, in the stored form of format.ts; later at every call. */
  timestamp(): string
  /** Milliseconds since 1970, for ages. */
  nowMs(): number
  /** `<prefix>-` and six lowercase hex digits. */
  newId(prefix: string): string
  /** All of standard input, as text. */
  readStdin(): string
}

/** How many arguments a command takes, in words and numbers of cobra. */
type ArgumentRule =
  | { readonly kind: "any" }
  | { readonly kind: "exactly"; readonly count: number }
  | { readonly kind: "atLeast"; readonly count: number }

/** What was typed: the arguments without flags, and the flags. */
export type Invocation = { readonly args: readonly string[]; readonly flags: Flags }

export type Command = {
  readonly name: string
  /** What follows the name in the usage line: `<id> <message>`. */
  readonly operands: string
  readonly summary: string
  readonly arguments: ArgumentRule
  readonly flags: readonly FlagSpec[]
  readonly children?: readonly Command[]
  /** Gives what goes to standard output; throws `CommandError` or `StoreError`. */
  run(invocation: Invocation, context: CommandContext): string
}

/** A command that was refused, in prog's words. Exit code 1. */
export class CommandError extends Error {
  readonly code: "usage" | "refused" | "store"

  constructor(code: CommandError["code"], message: string, cause?: unknown) {
    super(message, { cause })
    this.name = "CommandError"
    this.code = code
  }
}

export const refuse = (message: string): CommandError => new CommandError("refused", message)

/** The words prog v0.17 uses for an id that no item has. */
export const itemNotFound = (id: string): CommandError =>
  refuse(`item not found: ${id} (use 'prog list' to see available items)`)

/** Names the step in front of a store's failure, as prog does: `failed to add log: constraint failed: …`. */
export const step = <T>(name: string, work: () => T): T => {
  try {
    return work()
  } catch (error) {
    if (error instanceof StoreError) {
      throw new CommandError("store", `${name}: ${error.message}`, error)
    }
    throw error
  }
}

export const exactly = (count: number): ArgumentRule => ({ kind: "exactly", count })
export const atLeast = (count: number): ArgumentRule => ({ kind: "atLeast", count })
export const anyArguments: ArgumentRule = { kind: "any" }

/** The text that prog's `fmt.Println` of each line gives. */
export const lines = (texts: readonly string[]): string => texts.map((text) => `${text}\n`).join("")

type ContextDeps = {
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
