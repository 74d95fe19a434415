import type { Database } from "bun:sqlite"
import { type Cell, type Cells, columnOf } from "./sqlite-rows.ts"
import { StoreError, storeError } from "./store-error.ts"

/** The few ways the store speaks to SQLite. Every failure is a StoreError in the words of prog's driver. */
export type Connection = {
  all(query: string, ...values: Cell[]): Cells[]
  first(query: string, ...values: Cell[]): Cells | undefined
  /** Gives the number of changed rows. */
  run(query: string, ...values: Cell[]): number
  /** `extra` stands between INSERT and INTO: `OR IGNORE`. */
  insert(table: string, row: Readonly<Record<string, Cell>>, extra?: string): void
  /** Sets the given keys of the rows that match; the keys of both are the rows' own. */
  update(table: string, changes: Readonly<Record<string, Cell>>, where: Readonly<Record<string, Cell>>): boolean
}

type SqliteFailure = Error & { readonly errno: number }

const isSqliteFailure = (error: unknown): error is SqliteFailure =>
  error instanceof Error && "errno" in error && typeof error.errno === "number"

/** Gives what the work gives; a failure of SQLite becomes a StoreError, anything else passes. */
export const translateFailure = <T>(work: () => T): T => {
  try {
    return work()
  } catch (error) {
    if (error instanceof StoreError || !isSqliteFailure(error)) throw error
    throw storeError(error.message, error.errno, error)
  }
}

export const createConnection = (database: Database): Connection => {
  const all = (query: string, ...values: Cell[]): Cells[] =>
    translateFailure(() => database.query<Cells, Cell[]>(query).all(...values))
  const run = (query: string, ...values: Cell[]): number =>
    translateFailure(() => database.query<Cells, Cell[]>(query).run(...values).changes)
  return {
    all,
    run,
    first: (query, ...values) => all(query, ...values)[0],
    insert: (table, row, extra = "") => {
      const keys = Object.keys(row)
      const marks = keys.map(() => "?").join(", ")
      run(`INSERT ${extra} INTO ${table} (${keys.map(columnOf).join(", ")}) VALUES (${marks})`, ...Object.values(row))
    },
    update: (table, changes, where) => {
      const sets = Object.keys(changes).map((key) => `${columnOf(key)} = ?`)
      const conditions = Object.keys(where).map((key) => `${columnOf(key)} = ?`)
      const query = `UPDATE ${table} SET ${sets.join(", ")} WHERE ${conditions.join(" AND ")}`
      return run(query, ...Object.values(changes), ...Object.values(where)) > 0
    },
  }
}
