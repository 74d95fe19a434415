import { Database } from "bun:sqlite"
import { ensureSchema, missingLedger } from "./sqlite-schema.ts"
import { type Cell, type Cells, LedgerError, type LedgerStore } from "./store.ts"

const BUSY = 5
const CANNOT_OPEN = 14

/** Extended codes have the primary one in their low byte. */
const primaryCode = (code: number): number => code & 0xff

/** Makes a failure of SQLite a refusal of the command, in SQLite's words. Other errors pass. */
const translateFailure = <T>(work: () => T): T => {
  try {
    return work()
  } catch (error) {
    if (!(error instanceof Error && "errno" in error && typeof error.errno === "number")) throw error
    throw new LedgerError(error.message, error.errno, error)
  }
}

const BUSY_TIMEOUT_MS = 5000

const isBusy = (error: unknown): boolean => error instanceof LedgerError && primaryCode(error.code) === BUSY

const BETWEEN_TRIES_MS = 5

/**
 * Where two processes make a database, or end with the last use of one, at the same moment, SQLite refuses the switch to WAL and the
 * look at the schema at once: it has begun to read, and does not wait where that may be for ever (sqlite3_busy_handler).
 */
const prepare = (database: Database, mode: "create" | undefined): void => {
  const endsAt = performance.now() + BUSY_TIMEOUT_MS
  for (;;) {
    try {
      translateFailure(() => {
        database.run("PRAGMA foreign_keys = ON")
        database.run(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`)
        database.run("PRAGMA journal_mode = WAL")
        ensureSchema(database, mode)
      })
      return
    } catch (error) {
      if (!isBusy(error) || performance.now() > endsAt) throw error
      Bun.sleepSync(BETWEEN_TRIES_MS)
    }
  }
}

/** The tasks of all projects are for their account alone; prog itself takes a folder as it is. */
const makeFolderOf = (path: string): void => {
  try {
    const { mkdirSync } = process.getBuiltinModule("node:fs")
    mkdirSync(path.slice(0, Math.max(0, path.lastIndexOf("/"))) || ".", { recursive: true, mode: 0o700 })
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    throw new LedgerError(`failed to create directory: ${reason}`, CANNOT_OPEN, error)
  }
}

/** Looks at the folder only if the file cannot be opened: usually it exists. */
const openFile = (path: string, mode: "create" | undefined): Database => {
  const open = (): Database =>
    translateFailure(() => new Database(path, { create: mode === "create", readwrite: true }))
  try {
    return open()
  } catch (error) {
    if (!(error instanceof LedgerError) || error.code !== CANNOT_OPEN) throw error
    if (mode === "create") makeFolderOf(path)
    else if (!process.getBuiltinModule("node:fs").existsSync(path)) throw missingLedger()
    return open()
  }
}

const openDatabase = (path: string, mode: "create" | undefined): Database => {
  try {
    const database = openFile(path, mode)
    prepare(database, mode)
    return database
  } catch (error) {
    if (!(error instanceof LedgerError)) throw error
    throw new LedgerError(`failed to open database ${path}: ${error.message}`, error.code, error)
  }
}

/** As long as SQLite would be waited for with four tries. */
const WRITE_TIMEOUT_MS = 20_000
/** SQLite's own waits grow to 100 ms, in which others that have just come are faster: with many writers one waits for seconds. */
const WRITE_LOOK_MS = 4

/** Runs the work as one transaction. SQLite does not queue writers: who waits looks again every few milliseconds, at a random moment. */
const writeTransaction = <T>(database: Database, work: () => T): T => {
  const transaction = database.transaction(work)
  const endsAt = performance.now() + WRITE_TIMEOUT_MS
  database.run("PRAGMA busy_timeout = 0")
  try {
    for (;;) {
      try {
        return translateFailure(() => transaction.immediate())
      } catch (error) {
        if (!isBusy(error) || performance.now() > endsAt) throw error
        Bun.sleepSync(Math.random() * WRITE_LOOK_MS)
      }
    }
  } finally {
    database.run(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`)
  }
}

const marked = (cells: Cells, between: string): string =>
  Object.keys(cells)
    .map((column) => `${column} = ?`)
    .join(between)

/**
 * Opens prog's database. Works on Bun only.
 *
 * @param mode "create" makes the file, its folder and the tables if they are missing
 * @throws LedgerError when the file cannot be opened, is not a database or holds no ledger
 */
export const openSqliteStore = (path: string, mode?: "create"): LedgerStore => {
  const database = openDatabase(path, mode)
  const run: LedgerStore["run"] = (query, ...values) =>
    translateFailure(() => database.query<unknown, Cell[]>(query).run(...values).changes)
  return {
    location: path,
    all: <Row>(query: string, ...values: readonly Cell[]) =>
      translateFailure(() => database.query<Row, Cell[]>(query).all(...values)),
    run,
    insert: (table, row, otherwise) => {
      const columns = Object.keys(row)
      const marks = columns.map(() => "?").join(", ")
      run(`INSERT ${otherwise ?? ""} INTO ${table} (${columns.join(", ")}) VALUES (${marks})`, ...Object.values(row))
    },
    update: (table, where, changes) => {
      const query = `UPDATE ${table} SET ${marked(changes, ", ")} WHERE ${marked(where, " AND ")}`
      return run(query, ...Object.values(changes), ...Object.values(where)) > 0
    },
    write: (work) => writeTransaction(database, work),
    close: () => database.close(),
  }
}

/** The tasks and epics in another database. @throws LedgerError when it is damaged */
export const countTasks = (path: string): number => {
  const database = new Database(path, { readonly: true })
  try {
    const [check] = database.query<Record<string, string>, []>("PRAGMA quick_check").all()
    const said = Object.values(check ?? {})[0]
    if (said !== "ok") throw new LedgerError(`the copy is damaged: ${said}`)
    return database.query<{ count: number }, []>("SELECT count(*) AS count FROM items").get()?.count ?? 0
  } finally {
    database.close()
  }
}
