/** Run by the OpenCode binary as Bun: `ledger-writer.ts ID NAME COUNT` logs COUNT lines, a new connection for each. */
import { createClock, createCommandContext } from "../../.opencode/baton/ledger/embedded/command-context.ts"
import { runCommand } from "../../.opencode/baton/ledger/embedded/run-command.ts"
import { openSqliteStore } from "../../.opencode/baton/ledger/embedded/sqlite-store.ts"

const [id = "", name = "", count = "0"] = process.argv.slice(2)

for (let at = 0; at < Number(count); at += 1) {
  const store = openSqliteStore(`${process.env.HOME}/.prog/prog.db`)
  const context = createCommandContext({
    openStore: () => store,
    readStdin: () => "",
    nowMs: Date.now,
    timestamp: createClock(Date.now),
  })
  const { exitCode, stderr } = await runCommand(["log", id, name, String(at)], context)
  store.close()
  if (exitCode !== 0) throw new Error(stderr)
}
