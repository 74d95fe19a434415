/**
 * The entry of the embedded ledger: `bun run main.ts ARGS`, or the OpenCode binary with BUN_BE_BUN=1 instead of bun. The
 * database is $PROG_DB or ~/.prog/prog.db, as for prog. Exit code 0, or 1 with `Error: …` on standard error.
 *
 * node:fs takes Bun 10 ms to load, as long as its whole start, so only rare branches load it.
 */

import { runCommand } from "./cli.ts"
import { createClock, createCommandContext } from "./command.ts"
import { openSqliteStore } from "./sqlite-store.ts"
import type { LedgerStore } from "./store.ts"

const STDIN = 0

/** The reader closed the pipe (`prog list | head -1`): the command is done. */
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
  openStore: (mode) => {
    opened = openSqliteStore(process.env.PROG_DB || `${homeFolder()}/.prog/prog.db`, mode)
    return opened
  },
  readStdin: () => process.getBuiltinModule("node:fs").readFileSync(STDIN, "utf8"),
  nowMs: Date.now,
  timestamp: createClock(Date.now),
  folderProject: async () => (await import("./folder-project.ts")).findFolderProject(process.cwd()),
})

const result = await runCommand(process.argv.slice(2), context)
opened?.close()
await print(Bun.stderr, result.stderr)
await print(Bun.stdout, result.stdout)
process.exitCode = result.exitCode
