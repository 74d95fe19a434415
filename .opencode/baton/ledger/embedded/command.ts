import type { FlagSpec, Invocation } from "./flags.ts"
import { formatTimestamp } from "./format.ts"
import { LedgerError, type LedgerStore } from "./store.ts"

type ContextDeps = {
  /** The database's path, also where there is none. */
  readonly location: string
  /** Opens the store; called once, by the first command that needs it. */
  readonly openStore: (mode?: "create") => LedgerStore
  /** Counts the tasks of another database, and checks it first. @throws LedgerError for a damaged one */
  readonly countTasks: (path: string) => number
  readonly readStdin: () => string
  /** Milliseconds since 1970, for ages. */
  readonly nowMs: () => number
  /** Now, in the stored form of format.ts; each call gives a later time. */
  readonly timestamp: () => string
  /** The project of the folder that the program runs in, "" for none. */
  readonly folderProject: () => Promise<string>
  /** The same where the folder's project has Baton, else "". */
  readonly batonProject: () => Promise<string>
}

export type Command = {
  readonly name: string
  /** The usage line after the name: `<id> <message>`. */
  readonly operands?: string
  readonly summary: string
  /** The number of arguments it takes; any, when it does not say. */
  readonly arguments?: { readonly least: number; readonly most?: number }
  readonly flags?: readonly FlagSpec[]
  readonly children?: readonly Command[]
  /** It works on one project: that of the folder, when -p is not given. */
  readonly usesFolderProject?: true
  /** It shows a person one project, that of the folder, unless -p or --all is given. */
  readonly showsFolderProject?: true
  /**
   * @param folderProject for a command that shows it, else ""
   * @returns the lines of standard output. @throws LedgerError
   */
  run(invocation: Invocation, context: CommandContext, folderProject: string): readonly string[]
}

export const refuse = (message: string): LedgerError => new LedgerError(message)

/** Puts the failed step before SQLite's refusal: `failed to delete item: FOREIGN KEY constraint failed`. */
export const withErrorPrefix = <T>(step: string, work: () => T): T => {
  try {
    return work()
  } catch (error) {
    throw error instanceof LedgerError ? new LedgerError(`${step}: ${error.message}`, error.code, error) : error
  }
}

export const ALL_FLAG: FlagSpec = { name: "all", kind: "switch", about: "of every project, not of this folder's alone" }
export const JSON_FLAG: FlagSpec = { name: "json", kind: "switch", about: "print JSON" }

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

/** The environment of a command. The store opens at its first use, after the arguments are checked. */
export const createCommandContext = ({ openStore, ...deps }: ContextDeps) => {
  let opened: LedgerStore | undefined
  const open = (mode?: "create"): LedgerStore => {
    opened ??= openStore(mode)
    return opened
  }
  const writeTo = <T>(store: LedgerStore, work: (store: LedgerStore) => T): T => store.write(() => work(store))
  return {
    ...deps,
    store: (): LedgerStore => open(),
    /** Runs the work as one transaction: if it throws, nothing is kept. */
    write: <T>(work: (store: LedgerStore) => T): T => writeTo(open(), work),
    /** Like `write`, in a database that is made when it is missing. */
    create: <T>(work: (store: LedgerStore) => T): T => writeTo(open("create"), work),
    /** `<prefix>-` and six lowercase hex digits. */
    newId: (prefix: string): string => `${prefix}-${randomHex()}`,
  }
}

export type CommandContext = ReturnType<typeof createCommandContext>
