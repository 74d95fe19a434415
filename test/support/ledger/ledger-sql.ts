/** Run by the OpenCode binary as Bun: `ledger-sql.ts DATABASE`, queries as a JSON list on standard input. */
import { Database } from "bun:sqlite"

const database = new Database(process.argv[2] ?? ":memory:", { create: true, readwrite: true })
database.run("PRAGMA busy_timeout = 5000")
const queries: string[] = JSON.parse(await Bun.stdin.text())
const results = queries.map((query) =>
  /^\s*(select|pragma)/i.test(query) ? database.query(query).all() : database.run(query),
)
database.close()
await Bun.write(Bun.stdout, JSON.stringify(results))
