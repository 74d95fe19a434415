/**
 * The embedded ledger's entry: `bun run main.ts ARGS`, or the OpenCode binary with BUN_BE_BUN=1 in bun's place.
 * The database is $PROG_DB, or ~/.prog/prog.db, as for prog. Exit code 0, or 1 with `Error: …` on standard error.
 */
import { readFileSync, writeSync } from "node:fs"
import { homedir } from "node:os"
import { join } from "node:path"
import { createCommandContext } from "./command-context.ts"
import { runCommand } from "./run-command.ts"
import { openSqliteStore } from "./sqlite-store.ts"
import type { LedgerStore } from "./store.ts"

const STDIN = 0
const STDOUT = 1
const STDERR = 2

/** The reader went away (`prog list | head -1`): nothing is left to tell, and the command is done. */
const isClosedPipe = (error: unknown): boolean => error instanceof Error && "code" in error && error.code === "EPIPE"

const print = (descriptor: number, text: string): void => {
  let rest = Buffer.from(text)
  try {
    while (rest.length > 0) rest = rest.subarray(writeSync(descriptor, rest))
  } catch (error) {
    if (!isClosedPipe(error)) throw error
  }
}

const databasePath = (): string => process.env.PROG_DB || join(homedir(), ".prog", "prog.db")

let opened: LedgerStore | undefined
const context = createCommandContext({
  openStore: () => {
    opened = openSqliteStore(databasePath())
    return opened
  },
  readStdin: () => readFileSync(STDIN, "utf8"),
  nowMs: Date.now,
})

const result = runCommand(process.argv.slice(2), context)
opened?.close()
print(STDERR, result.stderr)
print(STDOUT, result.stdout)
process.exitCode = result.exitCode
