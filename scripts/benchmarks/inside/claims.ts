/**
 * `claims.ts HOW DATABASE COUNT START`: takes COUNT tasks from the queue from the time START on (milliseconds since 1970), by the
 * ledger's own `claim --next`, which opens the database anew each time as a process does, or by one bare statement on an open database.
 * Prints the milliseconds that each took.
 */
import { Database } from "bun:sqlite"
import { runCommand } from "../../../.opencode/baton/ledger/embedded/cli.ts"
import { createClock, createCommandContext } from "../../../.opencode/baton/ledger/embedded/command.ts"
import { countTasks, openSqliteStore } from "../../../.opencode/baton/ledger/embedded/sqlite-store.ts"
import type { LedgerStore } from "../../../.opencode/baton/ledger/embedded/store.ts"

const [how, path = "", count = "0", start = "0"] = process.argv.slice(2)
const timestamp = createClock(Date.now)

const claim = async (): Promise<string> => {
  let opened: LedgerStore | undefined
  const openStore = (mode?: "create"): LedgerStore => {
    opened = openSqliteStore(path, mode)
    return opened
  }
  const context = createCommandContext({
    location: path,
    openStore,
    countTasks,
    readStdin: () => "",
    nowMs: Date.now,
    timestamp,
    folderProject: async () => "",
    batonProject: async () => "",
  })
  const { exitCode, stdout, stderr } = await runCommand(
    ["claim", "--next", "-p", "demo", "--as", `w${process.pid}`],
    context,
  )
  opened?.close()
  if (exitCode !== 0) throw new Error(stderr)
  return stdout.trim()
}

const database = how === "bare" ? new Database(path) : undefined
database?.run("PRAGMA busy_timeout = 60000")
const statement = database?.query<{ id: string }, []>(`
  UPDATE items SET status = 'in_progress' WHERE rowid = (
    SELECT rowid FROM items WHERE project = 'demo' AND type = 'task' AND status = 'open' ORDER BY priority, created_at LIMIT 1)
  RETURNING id`)

await Bun.sleep(Math.max(0, Number(start) - Date.now()))
const taken: string[] = []
const times: number[] = []
for (let n = 0; n < Number(count); n++) {
  const began = performance.now()
  taken.push(statement ? (statement.get()?.id ?? "") : await claim())
  times.push(performance.now() - began)
}
console.log(JSON.stringify({ taken, ms: times, ended: Date.now() }))
