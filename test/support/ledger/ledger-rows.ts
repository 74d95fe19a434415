import { spawn, spawnSync } from "node:child_process"
import { once } from "node:events"
import { readdirSync, readlinkSync } from "node:fs"
import { endWithTest } from "../files/with-test.ts"
import { NEWEST } from "../opencode/opencode-binary.ts"

export type SqlRow = Record<string, string | number | null>

/** Run by the OpenCode binary as Bun; the file and the queries come as JSON on standard input. */
const SCRIPT = `
const [file, queries] = JSON.parse(await Bun.stdin.text())
const database = new (await import("bun:sqlite")).Database(file, { create: true, readwrite: true })
database.run("PRAGMA busy_timeout = 5000")
const run = (query) => /^\\s*(select|pragma|explain)/i.test(query) ? database.query(query).all() : database.run(query)
await Bun.write(Bun.stdout, JSON.stringify(queries.map(run)))`

/** Runs queries on a SQLite file, each on its own; returns the rows of each SELECT and PRAGMA. */
export const runSql = (databasePath: string, queries: readonly string[]): SqlRow[][] => {
  const { status, stdout, stderr } = spawnSync(NEWEST.path, ["-e", SCRIPT], {
    encoding: "utf8",
    env: { PATH: "/usr/bin:/bin", BUN_BE_BUN: "1" },
    input: JSON.stringify([databasePath, queries]),
    maxBuffer: 64 * 1024 * 1024,
  })
  if (status !== 0) throw new Error(`SQL on ${databasePath} failed: ${stderr}`)
  return JSON.parse(stdout)
}

/** Writes to the file as prog does before it has switched it to WAL, until its input ends. */
const HOLDER = `
const database = new (await import("bun:sqlite")).Database(process.argv[1], { create: true, readwrite: true })
database.run("BEGIN IMMEDIATE")
database.run("CREATE TABLE held (by TEXT)")
await Bun.write(Bun.stdout, "held")
await Bun.stdin.text()
database.run("ROLLBACK")`

/** Another process that is writing to a SQLite file. @returns a function that ends its transaction, and it */
export const holdWriteLock = async (databasePath: string): Promise<() => void> => {
  const holder = spawn(NEWEST.path, ["-e", HOLDER, databasePath], {
    env: { PATH: "/usr/bin:/bin", BUN_BE_BUN: "1" },
    stdio: ["pipe", "pipe", "inherit"],
  })
  endWithTest(holder)
  await once(holder.stdout, "data")
  return () => void holder.stdin.end()
}

/** The number of processes that have a file open. Only Linux tells. */
export const countOpeners = (path: string): number =>
  readdirSync("/proc").filter((pid) => {
    try {
      return (
        /^\d+$/.test(pid) && readdirSync(`/proc/${pid}/fd`).some((fd) => readlinkSync(`/proc/${pid}/fd/${fd}`) === path)
      )
    } catch {
      // It has ended, or closed a file meanwhile.
      return false
    }
  }).length

const TABLES = {
  items: "created_at, id",
  deps: "item_id, depends_on",
  logs: "id",
  projects: "name",
  labels: "name, project",
  item_labels: "item_id, label_id",
  concepts: "name, project",
  learnings: "created_at, id",
  learning_concepts: "learning_id, concept_id",
} as const

type LedgerTables = Record<keyof typeof TABLES, SqlRow[]>

export const readTables = (databasePath: string): LedgerTables => {
  const names = Object.keys(TABLES) as (keyof typeof TABLES)[]
  const results = runSql(
    databasePath,
    names.map((name) => `SELECT * FROM ${name} ORDER BY ${TABLES[name]}`),
  )
  return Object.fromEntries(names.map((name, at) => [name, results[at] ?? []])) as LedgerTables
}

/** The SQL of tables, indexes and triggers, and the schema's version. */
export const readSchema = (databasePath: string): { version: unknown; objects: string[] } => {
  const [version, objects] = runSql(databasePath, [
    "PRAGMA user_version",
    "SELECT type, name, sql FROM sqlite_master ORDER BY type, name",
  ])
  const spaced = (sql: unknown): string =>
    String(sql).replace(/\s+/g, " ").replace(/ ?, ?/g, ", ").replaceAll(" )", ")")
  return { version: version?.[0], objects: (objects ?? []).map((row) => `${row.type} ${row.name}: ${spaced(row.sql)}`) }
}
