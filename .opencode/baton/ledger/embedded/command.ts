import type { FlagSpec, Flags } from "./flags.ts"
import { formatTimestamp } from "./format.ts"
import { type LedgerStore, StoreError } from "./store.ts"

/** The environment of a command. The store opens at its first use, after the arguments are checked. */
export type CommandContext = {
  /** @param mode "create" makes a database that is missing; without it the command is refused then */
  store(mode?: "create"): LedgerStore
  /** Now, in the stored form of format.ts; each call gives a later time. */
  timestamp(): string
  /** Milliseconds since 1970, for ages. */
  nowMs(): number
  /** `<prefix>-` and six lowercase hex digits. */
  newId(prefix: string): string
  /** All of standard input, as text. */
  readStdin(): string
  /** The project of the folder that the program runs in, "" for none. */
  folderProject(): Promise<string>
}

/** Number of arguments of a command, as cobra counts them. */
type ArgumentRule =
  | { readonly kind: "any" }
  | { readonly kind: "exactly"; readonly count: number }
  | { readonly kind: "atLeast"; readonly count: number }
  | { readonly kind: "atMost"; readonly count: number }

/** The parsed command line: the arguments without flags, and the flags. */
export type Invocation = { readonly args: readonly string[]; readonly flags: Flags }

export type Command = {
  readonly name: string
  /** The usage line after the name: `<id> <message>`. */
  readonly operands: string
  readonly summary: string
  readonly arguments: ArgumentRule
  readonly flags: readonly FlagSpec[]
  readonly children?: readonly Command[]
  /** It works on one project: that of the folder, when -p is not given. */
  readonly usesFolderProject?: true
  /** @returns the standard output. @throws `CommandError` or `StoreError` */
  run(invocation: Invocation, context: CommandContext): string
}

/** A refused command, with prog's message. Exit code 1. */
export class CommandError extends Error {
  readonly code: "usage" | "refused" | "store"

  constructor(code: CommandError["code"], message: string, cause?: unknown) {
    super(message, { cause })
    this.name = "CommandError"
    this.code = code
  }
}

export const refuse = (message: string): CommandError => new CommandError("refused", message)

/** prog v0.17's message for an unknown id. */
export const itemNotFound = (id: string): CommandError =>
  refuse(`item not found: ${id} (use 'prog list' to see available items)`)

/** Puts the failed step before a store's failure, as prog does: `failed to add log: constraint failed: …`. */
export const withErrorPrefix = <T>(name: string, work: () => T): T => {
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
export const atMost = (count: number): ArgumentRule => ({ kind: "atMost", count })
export const anyArguments: ArgumentRule = { kind: "any" }

/** The output of prog's `fmt.Println` for each line. */
export const lines = (texts: readonly string[]): string => texts.map((text) => `${text}\n`).join("")

type ContextDeps = {
  /** Opens the store; called once, by the first command that needs it. */
  readonly openStore: (mode?: "create") => LedgerStore
  readonly readStdin: () => string
  /** Milliseconds since 1970. */
  readonly nowMs: () => number
  /** From createClock. */
  readonly timestamp: () => string
  readonly folderProject: () => Promise<string>
}

/** Creates a clock in the stored form and local time. It rises strictly, so that later records sort later. */
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

/** Reports a store that cannot be opened; its message leaves out the step that needed the store. */
const openOrRefuse = ({ openStore }: ContextDeps, mode: "create" | undefined): LedgerStore => {
  try {
    return openStore(mode)
  } catch (error) {
    if (error instanceof StoreError) throw new CommandError("store", error.message, error)
    throw error
  }
}

export const createCommandContext = (deps: ContextDeps): CommandContext => {
  let store: LedgerStore | undefined
  return {
    store: (mode) => {
      store ??= openOrRefuse(deps, mode)
      return store
    },
    timestamp: deps.timestamp,
    nowMs: deps.nowMs,
    newId: (prefix) => `${prefix}-${randomHex()}`,
    readStdin: deps.readStdin,
    folderProject: deps.folderProject,
  }
}
