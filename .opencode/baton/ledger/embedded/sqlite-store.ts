import { Database } from "bun:sqlite"
import { ensureSchema } from "./sqlite-schema.ts"
import {
  type ClaimRow,
  type ClaimStore,
  type ConceptRow,
  type ConceptStore,
  type DependencyStore,
  type ItemRow,
  type ItemStore,
  type LabelRow,
  type LabelStore,
  type LearningRow,
  type LearningStore,
  type LedgerStore,
  type LogStore,
  missingLedger,
  type ProjectStore,
  StoreError,
  storeError,
} from "./store.ts"

/** The store's calls to SQLite. Every failure is a StoreError in the words of prog's driver. */
type Connection = {
  all(query: string, ...values: Cell[]): Cells[]
  first(query: string, ...values: Cell[]): Cells | undefined
  /** @returns the number of changed rows */
  run(query: string, ...values: Cell[]): number
  /** `extra` goes between INSERT and INTO: `OR IGNORE`. */
  insert(table: string, row: Readonly<Record<string, Cell>>, extra?: string): void
  /** Updates the matching rows. The keys of both arguments are those of the row types. */
  update(table: string, changes: Readonly<Record<string, Cell>>, where: Readonly<Record<string, Cell>>): boolean
}

type SqliteFailure = Error & { readonly errno: number }

const isSqliteFailure = (error: unknown): error is SqliteFailure =>
  error instanceof Error && "errno" in error && typeof error.errno === "number"

/** Turns a failure of SQLite into a StoreError; other errors pass. */
const translateFailure = <T>(work: () => T): T => {
  try {
    return work()
  } catch (error) {
    if (error instanceof StoreError || !isSqliteFailure(error)) throw error
    throw storeError(error.message, error.errno, error)
  }
}

const createConnection = (database: Database): Connection => {
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

type Cell = string | number | null
type Cells = Readonly<Record<string, Cell>>

const text = (cell: Cell | undefined): string => (cell === null || cell === undefined ? "" : String(cell))
const nullable = (cell: Cell | undefined): string | null => (cell === null || cell === undefined ? null : String(cell))

const DEFAULT_PRIORITY = 2

/** prog never writes NULL in a text column; another writer may have. */
const itemRow = (cells: Cells): ItemRow => ({
  id: text(cells.id),
  project: text(cells.project),
  type: text(cells.type),
  title: text(cells.title),
  description: text(cells.description),
  definitionOfDone: nullable(cells.definition_of_done),
  status: text(cells.status),
  priority: Number(cells.priority ?? DEFAULT_PRIORITY),
  parentId: nullable(cells.parent_id),
  createdAt: text(cells.created_at),
  updatedAt: text(cells.updated_at),
})

const labelRow = (cells: Cells): LabelRow => ({
  id: text(cells.id),
  name: text(cells.name),
  project: text(cells.project),
  color: text(cells.color),
  createdAt: text(cells.created_at),
  updatedAt: text(cells.updated_at),
})

const conceptRow = (cells: Cells): ConceptRow => ({
  id: text(cells.id),
  name: text(cells.name),
  project: text(cells.project),
  summary: text(cells.summary),
  lastUpdated: text(cells.last_updated),
  learningCount: Number(cells.learning_count ?? 0),
})

const fileList = (cell: Cell | undefined): string[] => {
  const stored = text(cell)
  const parsed: unknown = stored === "" ? [] : JSON.parse(stored)
  return Array.isArray(parsed) ? parsed.filter((file) => typeof file === "string") : []
}

const learningRow = (cells: Cells): LearningRow => ({
  id: text(cells.id),
  project: text(cells.project),
  createdAt: text(cells.created_at),
  updatedAt: text(cells.updated_at),
  taskId: nullable(cells.task_id),
  summary: text(cells.summary),
  detail: text(cells.detail),
  files: fileList(cells.files),
  status: text(cells.status),
})

const COLUMN_NAMES: Readonly<Record<string, string>> = {
  definitionOfDone: "definition_of_done",
  parentId: "parent_id",
  createdAt: "created_at",
  updatedAt: "updated_at",
  lastUpdated: "last_updated",
  taskId: "task_id",
  session: "session_id",
  processStart: "process_start",
  claimedAt: "claimed_at",
  leaseUntil: "lease_until",
}

const columnOf = (key: string): string => COLUMN_NAMES[key] ?? key

const LABEL_NAMES = `
  SELECT il.item_id, l.name FROM item_labels il JOIN labels l ON il.label_id = l.id ORDER BY il.item_id, l.name`

const createSqliteItems = (connection: Connection): ItemStore => ({
  find: (id) => {
    const cells = connection.first("SELECT * FROM items WHERE id = ?", id)
    return cells === undefined ? undefined : itemRow(cells)
  },
  all: () => connection.all("SELECT * FROM items ORDER BY rowid").map(itemRow),
  childStatuses: (parentId) =>
    connection.all("SELECT status FROM items WHERE parent_id = ?", parentId).map(({ status }) => String(status)),
  insert: (row) => connection.insert("items", row),
  update: (id, changes) => connection.update("items", changes, { id }),
  remove: (id) => {
    connection.run("DELETE FROM items WHERE id = ?", id)
  },
})

const createSqliteDependencies = (connection: Connection): DependencyStore => ({
  all: () =>
    connection
      .all("SELECT item_id, depends_on FROM deps ORDER BY item_id, depends_on")
      .map((cells) => ({ itemId: String(cells.item_id), dependsOn: String(cells.depends_on) })),
  add: ({ itemId, dependsOn }) => connection.insert("deps", { item_id: itemId, depends_on: dependsOn }, "OR IGNORE"),
  removeOf: (itemId) => {
    connection.run("DELETE FROM deps WHERE item_id = ? OR depends_on = ?", itemId, itemId)
  },
})

const createSqliteLogs = (connection: Connection): LogStore => ({
  of: (itemId) =>
    connection
      .all("SELECT message, created_at FROM logs WHERE item_id = ? ORDER BY created_at, id", itemId)
      .map((cells) => ({ message: String(cells.message), createdAt: String(cells.created_at) })),
  add: (itemId, message) => connection.insert("logs", { item_id: itemId, message }),
  removeOf: (itemId) => {
    connection.run("DELETE FROM logs WHERE item_id = ?", itemId)
  },
})

const createSqliteProjects = (connection: Connection): ProjectStore => ({
  names: () => connection.all("SELECT name FROM projects ORDER BY name").map(({ name }) => String(name)),
  ensure: (name, at) => connection.insert("projects", { name, createdAt: at, updatedAt: at }, "OR IGNORE"),
})

const groupNames = (rows: readonly Cells[]): Map<string, string[]> => {
  const grouped = new Map<string, string[]>()
  for (const cells of rows) {
    const [itemId, name] = [String(cells.item_id), String(cells.name)]
    const known = grouped.get(itemId)
    if (known === undefined) grouped.set(itemId, [name])
    else known.push(name)
  }
  return grouped
}

const createSqliteLabels = (connection: Connection): LabelStore => ({
  of: (project) => connection.all("SELECT * FROM labels WHERE project = ? ORDER BY name", project).map(labelRow),
  insert: (row) => connection.insert("labels", row),
  rename: (project, name, newName, at) =>
    connection.update("labels", { name: newName, updatedAt: at }, { project, name }),
  remove: (id) => {
    connection.run("DELETE FROM item_labels WHERE label_id = ?", id)
    connection.run("DELETE FROM labels WHERE id = ?", id)
  },
  namesByItem: () => groupNames(connection.all(LABEL_NAMES)),
  attach: (itemId, labelId) => connection.insert("item_labels", { item_id: itemId, label_id: labelId }, "OR IGNORE"),
  detach: (itemId, labelId) =>
    connection.run("DELETE FROM item_labels WHERE item_id = ? AND label_id = ?", itemId, labelId) > 0,
})

const CONCEPTS = `
  SELECT c.*, (SELECT COUNT(*) FROM learning_concepts lc WHERE lc.concept_id = c.id) AS learning_count
  FROM concepts c WHERE c.project = ? ORDER BY learning_count DESC, c.name`

const SEARCH = `
  SELECT l.* FROM learnings l JOIN learnings_fts fts ON l.rowid = fts.rowid
  WHERE learnings_fts MATCH ? AND l.project = ? ORDER BY rank`

const CONCEPT_NAMES = `
  SELECT c.name FROM learning_concepts lc JOIN concepts c ON c.id = lc.concept_id
  WHERE lc.learning_id = ? ORDER BY lc.concept_id`

const createSqliteConcepts = (connection: Connection): ConceptStore => ({
  of: (project) => connection.all(CONCEPTS, project).map(conceptRow),
  insert: (row) => connection.insert("concepts", row),
  update: (project, name, changes) => connection.update("concepts", changes, { name, project }),
})

const createSqliteLearnings = (connection: Connection): LearningStore => ({
  find: (id) => {
    const cells = connection.first("SELECT * FROM learnings WHERE id = ?", id)
    return cells === undefined ? undefined : learningRow(cells)
  },
  of: (project) =>
    connection.all("SELECT * FROM learnings WHERE project = ? ORDER BY created_at DESC", project).map(learningRow),
  search: (project, query) => connection.all(SEARCH, query, project).map(learningRow),
  insert: (row) => connection.insert("learnings", { ...row, files: JSON.stringify(row.files) }),
  update: (id, changes) => connection.update("learnings", changes, { id }),
  remove: (id) => {
    connection.run("DELETE FROM learning_concepts WHERE learning_id = ?", id)
    return connection.run("DELETE FROM learnings WHERE id = ?", id) > 0
  },
  tag: (learningId, conceptId) =>
    connection.insert("learning_concepts", { learning_id: learningId, concept_id: conceptId }),
  conceptNames: (learningId) => connection.all(CONCEPT_NAMES, learningId).map(({ name }) => String(name)),
})

/** Beside prog's own tables and without a foreign key, so that prog can go on deleting tasks. */
const CLAIM_TABLE = `
CREATE TABLE IF NOT EXISTS baton_claims (
	task_id TEXT PRIMARY KEY,
	holder TEXT NOT NULL,
	session_id TEXT NOT NULL,
	host TEXT NOT NULL,
	directory TEXT NOT NULL,
	pid INTEGER NOT NULL,
	process_start TEXT NOT NULL,
	claimed_at TEXT NOT NULL,
	lease_until TEXT NOT NULL,
	fence INTEGER NOT NULL
)`

const claimRow = (cells: Cells): ClaimRow => ({
  taskId: text(cells.task_id),
  holder: text(cells.holder),
  session: text(cells.session_id),
  host: text(cells.host),
  directory: text(cells.directory),
  pid: Number(cells.pid),
  processStart: text(cells.process_start),
  claimedAt: text(cells.claimed_at),
  leaseUntil: text(cells.lease_until),
  fence: Number(cells.fence),
})

const createSqliteClaims = (connection: Connection): ClaimStore => {
  const isThere = (): boolean =>
    connection.first("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'baton_claims'") !== undefined
  const select = (rest: string, ...values: Cell[]): ClaimRow[] =>
    isThere() ? connection.all(`SELECT * FROM baton_claims ${rest}`, ...values).map(claimRow) : []
  return {
    find: (taskId) => select("WHERE task_id = ?", taskId)[0],
    all: () => select("ORDER BY claimed_at DESC, task_id"),
    put: (row) => {
      connection.run(CLAIM_TABLE)
      connection.insert("baton_claims", row, "OR REPLACE")
    },
  }
}

const BUSY_TIMEOUT_MS = 5000

/** Sets the timeout before WAL: switching to WAL needs exclusive access to the file, and fails at once without a timeout. */
const prepare = (database: Database, mode: "create" | undefined): void => {
  database.run("PRAGMA foreign_keys = ON")
  database.run(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`)
  database.run("PRAGMA journal_mode = WAL")
  ensureSchema(database, mode)
}

const BUSY = 5
const CANNOT_OPEN = 14

/** Extended codes have the primary one in their low byte. */
const isBusy = (error: unknown): boolean => error instanceof StoreError && (error.code & 0xff) === BUSY

/** The tasks of all projects are for their account alone; prog itself takes a folder as it is. */
const makeFolderOf = (path: string): void => {
  try {
    const { mkdirSync } = process.getBuiltinModule("node:fs")
    mkdirSync(path.slice(0, Math.max(0, path.lastIndexOf("/"))) || ".", { recursive: true, mode: 0o700 })
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    throw new StoreError(`failed to create directory: ${reason}`, CANNOT_OPEN, error)
  }
}

/** Looks at the folder only if the file cannot be opened: usually it exists. */
const openFile = (path: string, mode: "create" | undefined): Database => {
  const open = (): Database =>
    translateFailure(() => new Database(path, { create: mode === "create", readwrite: true }))
  try {
    return open()
  } catch (error) {
    if (!(error instanceof StoreError) || error.code !== CANNOT_OPEN) throw error
    if (mode === "create") makeFolderOf(path)
    else if (!process.getBuiltinModule("node:fs").existsSync(path)) throw missingLedger()
    return open()
  }
}

const openDatabase = (path: string, mode: "create" | undefined): Database => {
  try {
    const database = openFile(path, mode)
    translateFailure(() => prepare(database, mode))
    return database
  } catch (error) {
    if (!(error instanceof StoreError)) throw error
    throw new StoreError(`failed to open database ${path}: ${error.message}`, error.code, error)
  }
}

/** SQLite does not queue waiting writers: with many of them, one may wait for the whole timeout. */
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
 * Opens prog's database. Works on Bun only.
 *
 * @param path of the file; its folder is created with mode 0755
 * @param mode "create" makes the file, its folder and the tables if they are missing
 * @throws StoreError when the file cannot be opened, is not a database or holds no ledger
 */
export const openSqliteStore = (path: string, mode?: "create"): LedgerStore => {
  const database = openDatabase(path, mode)
  const connection = createConnection(database)
  return {
    items: createSqliteItems(connection),
    dependencies: createSqliteDependencies(connection),
    logs: createSqliteLogs(connection),
    projects: createSqliteProjects(connection),
    labels: createSqliteLabels(connection),
    concepts: createSqliteConcepts(connection),
    learnings: createSqliteLearnings(connection),
    claims: createSqliteClaims(connection),
    location: path,
    write: (work) => writeTransaction(database, work),
    close: () => database.close(),
  }
}
