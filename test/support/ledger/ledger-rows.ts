import { spawnSync } from "node:child_process"
import { join } from "node:path"
import { NEWEST } from "../opencode/opencode-binary.ts"

export type SqlRow = Record<string, string | number | null>

/** Runs queries on a SQLite file, each on its own; returns the rows of each SELECT and PRAGMA. */
export const runSql = (databasePath: string, queries: readonly string[]): SqlRow[][] => {
  const script = join(import.meta.dirname, "ledger-sql.ts")
  const { status, stdout, stderr } = spawnSync(NEWEST.path, ["run", script, databasePath], {
    encoding: "utf8",
    env: { PATH: "/usr/bin:/bin", BUN_BE_BUN: "1" },
    input: JSON.stringify(queries),
    maxBuffer: 64 * 1024 * 1024,
  })
  if (status !== 0) throw new Error(`SQL on ${databasePath} failed: ${stderr}`)
  return JSON.parse(stdout)
}

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
