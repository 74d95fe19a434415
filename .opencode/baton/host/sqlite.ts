/** A database of another program's, or of the ledger's, read and never written. */
export type ReadOnlyDatabase = {
  /** All rows of a query that is asked often. @throws SQLite's own error */
  all<Row>(query: string, ...values: readonly (string | number)[]): Row[]
  /** Gives the rows one after the other. @throws SQLite's own error */
  rows<Row>(query: string, ...values: readonly (string | number)[]): Iterable<Row>
  close(): void
}

/** The part of it that is used here; the types of the oldest supported Node do not have it. */
type NodeSqlite = {
  readonly DatabaseSync: new (
    path: string,
    options: { readonly readOnly: boolean },
  ) => {
    exec(query: string): void
    prepare(query: string): { iterate(...values: readonly (string | number)[]): Iterable<unknown> }
    close(): void
  }
}

const WAIT = "PRAGMA busy_timeout = 5000"

/**
 * Opens an SQLite database that other processes may write to meanwhile, on Bun or Node.
 *
 * @throws SQLite's own error, also where there is none
 */
export const openReadOnly = async (path: string): Promise<ReadOnlyDatabase> => {
  if (process.versions.bun !== undefined) {
    const { Database } = await import("bun:sqlite")
    const database = new Database(path, { readonly: true })
    database.run(WAIT)
    return {
      all: <Row>(query: string, ...values: readonly (string | number)[]) =>
        database.query<Row, (string | number)[]>(query).all(...values),
      rows: <Row>(query: string, ...values: readonly (string | number)[]) =>
        database.prepare<Row, (string | number)[]>(query).iterate(...values),
      close: () => database.close(),
    }
  }
  // Node has it since 22.5, and warns of it to standard error.
  const sqlite = process.getBuiltinModule("node:sqlite") as NodeSqlite | undefined
  if (sqlite === undefined) throw new Error(`Node ${process.versions.node} reads no SQLite database`)
  const database = new sqlite.DatabaseSync(path, { readOnly: true })
  database.exec(WAIT)
  return {
    all: <Row>(query: string, ...values: readonly (string | number)[]) => [
      ...(database.prepare(query).iterate(...values) as Iterable<Row>),
    ],
    rows: <Row>(query: string, ...values: readonly (string | number)[]) =>
      database.prepare(query).iterate(...values) as Iterable<Row>,
    close: () => database.close(),
  }
}
