import { Database } from "bun:sqlite"
import { createConnection, translateFailure } from "./sqlite-connection.ts"
import { createSqliteConcepts, createSqliteLearnings } from "./sqlite-knowledge.ts"
import { ensureSchema } from "./sqlite-schema.ts"
import {
  createSqliteDependencies,
  createSqliteItems,
  createSqliteLabels,
  createSqliteLogs,
  createSqliteProjects,
} from "./sqlite-tasks.ts"
import type { LedgerStore } from "./store.ts"
import { StoreError } from "./store-error.ts"

const BUSY_TIMEOUT_MS = 5000

/** The timeout comes before WAL: switching to WAL needs the file for itself, and fails at once without one. */
const prepare = (database: Database): void => {
  database.run("PRAGMA foreign_keys = ON")
  database.run(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`)
  database.run("PRAGMA journal_mode = WAL")
  ensureSchema(database)
}

const BUSY = 5
const CANNOT_OPEN = 14

/** Extended codes carry the plain one in their low byte. */
const isBusy = (error: unknown): boolean => error instanceof StoreError && (error.code & 0xff) === BUSY

const makeFolderOf = (path: string): void => {
  try {
    const { mkdirSync } = process.getBuiltinModule("node:fs")
    mkdirSync(path.slice(0, Math.max(0, path.lastIndexOf("/"))) || ".", { recursive: true, mode: 0o755 })
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    throw new StoreError(`failed to create directory: ${reason}`, CANNOT_OPEN, error)
  }
}

/** The folder is made only when the file cannot be opened: the usual run finds it there. */
const openFile = (path: string): Database => {
  const open = (): Database => translateFailure(() => new Database(path, { create: true, readwrite: true }))
  try {
    return open()
  } catch (error) {
    if (!(error instanceof StoreError) || error.code !== CANNOT_OPEN) throw error
    makeFolderOf(path)
    return open()
  }
}

const openDatabase = (path: string): Database => {
  try {
    const database = openFile(path)
    translateFailure(() => prepare(database))
    return database
  } catch (error) {
    if (!(error instanceof StoreError)) throw error
    throw new StoreError(`failed to open database ${path}: ${error.message}`, error.code, error)
  }
}

/** Waiting is no queue in SQLite: under many writers one may be passed over for as long as the timeout lasts. */
const WRITE_ATTEMPTS = 4

const writeTransaction = <T>(database: Database, work: () => T): T => {
  const transaction = database.transaction(work)
  for (let attempt = 1; ; attempt += 1) {
    try {
      return translateFailure(() => transaction.immediate())
    } catch (error) {
      if (!isBusy(error) || attempt === WRITE_ATTEMPTS) throw error
    }
  }
}

/**
 * Opens prog's database, and creates file, folder and tables when they are missing. Loads on Bun only.
 * @param path of the file; its folder is made with mode 0755
 * @throws StoreError when the file cannot be opened or is no database
 */
export const openSqliteStore = (path: string): LedgerStore => {
  const database = openDatabase(path)
  const connection = createConnection(database)
  return {
    items: createSqliteItems(connection),
    dependencies: createSqliteDependencies(connection),
    logs: createSqliteLogs(connection),
    projects: createSqliteProjects(connection),
    labels: createSqliteLabels(connection),
    concepts: createSqliteConcepts(connection),
    learnings: createSqliteLearnings(connection),
    location: path,
    write: (work) => writeTransaction(database, work),
    close: () => database.close(),
  }
}
