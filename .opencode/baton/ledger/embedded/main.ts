/**
 * The embedded ledger's entry: `bun run main.ts ARGS`, or the OpenCode binary with BUN_BE_BUN=1 in bun's place.
 * The database is $PROG_DB, or ~/.prog/prog.db, as for prog. Exit code 0, or 1 with `Error: …` on standard error.
 *
 * node:fs costs Bun 10 ms to load, as much as its whole start: only a rare branch asks for it.
 */

import { runCommand } from "./cli.ts"
import { type CommandContext, CommandError } from "./command.ts"
import { formatTimestamp } from "./format.ts"
import { openSqliteStore } from "./sqlite-store.ts"
import { type LedgerStore, StoreError } from "./store.ts"

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

const STDIN = 0

/** The reader went away (`prog list | head -1`): nothing is left to tell, and the command is done. */
const isClosedPipe = (error: unknown): boolean => error instanceof Error && "code" in error && error.code === "EPIPE"

const print = async (stream: typeof Bun.stdout, text: string): Promise<void> => {
  if (text === "") return
  try {
    await Bun.write(stream, text)
  } catch (error) {
    if (!isClosedPipe(error)) throw error
  }
}

const homeFolder = (): string => process.env.HOME || process.getBuiltinModule("node:os").homedir()

let opened: LedgerStore | undefined
const context = createCommandContext({
  openStore: () => {
    opened = openSqliteStore(process.env.PROG_DB || `${homeFolder()}/.prog/prog.db`)
    return opened
  },
  readStdin: () => process.getBuiltinModule("node:fs").readFileSync(STDIN, "utf8"),
  nowMs: Date.now,
  timestamp: createClock(Date.now),
})

const result = await runCommand(process.argv.slice(2), context)
opened?.close()
await print(Bun.stderr, result.stderr)
await print(Bun.stdout, result.stdout)
process.exitCode = result.exitCode
