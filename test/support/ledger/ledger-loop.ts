/** Run by the OpenCode binary as Bun: runs the command lines that it receives as messages, each with a new connection. */

import { runCommand } from "../../../.opencode/baton/ledger/embedded/cli.ts"
import { createClock, createCommandContext } from "../../../.opencode/baton/ledger/embedded/command.ts"
import { countTasks, openSqliteStore } from "../../../.opencode/baton/ledger/embedded/sqlite-store.ts"
import type { LedgerStore } from "../../../.opencode/baton/ledger/embedded/store.ts"

export type LoopCall = { readonly database: string; readonly args: readonly string[]; readonly stdin: string }

const timestamp = createClock(Date.now)

const answer = async ({ database, args, stdin }: LoopCall): Promise<void> => {
  let opened: LedgerStore | undefined
  const openStore = (mode?: "create"): LedgerStore => {
    opened = openSqliteStore(database, mode)
    return opened
  }
  const none = async (): Promise<string> => ""
  const projects = { folderProject: none, batonProject: none }
  const context = createCommandContext({
    location: database,
    openStore,
    countTasks,
    readStdin: () => stdin,
    nowMs: Date.now,
    timestamp,
    ...projects,
  })
  // In a process of its own, a defect ends it with a stack on standard error and exit code 1.
  const ended = (error: unknown) => ({ exitCode: 1, stdout: "", stderr: Bun.inspect(error) })
  const result = await runCommand(args, context).catch(ended)
  opened?.close()
  process.send?.(result)
}

let last = Promise.resolve()
process.on("message", (call: LoopCall) => {
  last = last.then(() => answer(call))
})
