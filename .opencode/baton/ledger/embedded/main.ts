/**
 * The entry of the embedded ledger: `bun run main.ts ARGS`, or the OpenCode binary with BUN_BE_BUN=1 instead of bun. The
 * database is $PROG_DB or ~/.prog/prog.db, as for prog. Exit code 0, or 1 with `Error: …` on standard error.
 *
 * node:fs takes Bun 10 ms to load, as long as its whole start, so only rare branches load it.
 */

import { runCommand } from "./cli.ts"
import { createClock, createCommandContext } from "./command.ts"
import { countTasks, openSqliteStore } from "./sqlite-store.ts"
import type { LedgerStore } from "./store.ts"

const [STDIN, STDOUT, STDERR] = [0, 1, 2]

/** The reader closed the pipe (`prog list | head -1`): the command is done. */
const isClosedPipe = (error: unknown): boolean => error instanceof Error && "code" in error && error.code === "EPIPE"

/** Texts of agents are for programs as they are, and not for a terminal to act on. */
const forReader = async (descriptor: number, text: string): Promise<string> => {
  if (!/(?![\n\t])[\p{Cc}\p{Bidi_Control}]/u.test(text)) return text
  if (!process.getBuiltinModule("node:tty").isatty(descriptor)) return text
  return (await import("../../host/cli.ts")).printable(text)
}

const print = async (stream: typeof Bun.stdout, descriptor: number, text: string): Promise<void> => {
  if (text === "") return
  try {
    await Bun.write(stream, await forReader(descriptor, text))
  } catch (error) {
    if (!isClosedPipe(error)) throw error
  }
}

const homeFolder = (): string => process.env.HOME || process.getBuiltinModule("node:os").homedir()

const location = process.env.PROG_DB || `${homeFolder()}/.prog/prog.db`
let opened: LedgerStore | undefined
const context = createCommandContext({
  location,
  openStore: (mode) => {
    opened = openSqliteStore(location, mode)
    return opened
  },
  countTasks,
  readStdin: () => process.getBuiltinModule("node:fs").readFileSync(STDIN, "utf8"),
  nowMs: Date.now,
  timestamp: createClock(Date.now),
  folderProject: async () => (await import("./folder-project.ts")).findFolderProject(process.cwd()),
  batonProject: async () => (await import("./folder-project.ts")).findBatonProject(process.cwd()),
})

const hasChanged = (store: LedgerStore): boolean =>
  (store.all<{ changes: number }>("SELECT total_changes() AS changes")[0]?.changes ?? 0) > 0

const result = await runCommand(process.argv.slice(2), context)
await print(Bun.stderr, STDERR, result.stderr)
await print(Bun.stdout, STDOUT, result.stdout)
process.exitCode = result.exitCode
if (opened !== undefined && result.exitCode === 0 && hasChanged(opened))
  await (await import("./copy-when-due.ts")).copyWhenDue(opened)
opened?.close()
