/** A failure of the store, in the words of prog's SQLite driver: `constraint failed: FOREIGN KEY … (787)`. */
export class StoreError extends Error {
  readonly code: number

  /** @param code SQLite's extended result code */
  constructor(message: string, code: number, cause?: unknown) {
    super(message, { cause })
    this.name = "StoreError"
    this.code = code
  }
}

const RESULT_TEXTS: Readonly<Record<number, string>> = {
  1: "SQL logic error",
  3: "access permission denied",
  5: "database is locked",
  8: "attempt to write a readonly database",
  10: "disk I/O error",
  11: "database disk image is malformed",
  13: "database or disk is full",
  14: "unable to open database file",
  19: "constraint failed",
  26: "file is not a database",
}

const PRIMARY_CODE_MASK = 0xff
const SQLITE_BUSY = 5

/** Creates a StoreError in the words of modernc.org/sqlite: `<result text>: <detail> (<code>)`. */
export const storeError = (detail: string, code: number, cause?: unknown): StoreError => {
  const text = RESULT_TEXTS[code & PRIMARY_CODE_MASK] ?? "unknown error"
  const busy = code === SQLITE_BUSY ? " (SQLITE_BUSY)" : ""
  const message = detail === text || detail === "" ? text : `${text}: ${detail}`
  return new StoreError(`${message} (${code})${busy}`, code, cause)
}

const CANNOT_OPEN = 14

/** Only `init`, `add` and `learn` make a ledger: an empty one in the place of a lost one would look as if all was well. */
export const missingLedger = (): StoreError =>
  new StoreError(
    "no ledger is there. Restore it from a backup, set PROG_DB to where it is, or make a new one with 'prog init'",
    CANNOT_OPEN,
  )

/**
 * The rows of a ledger, and below the interface that stores them. Times are texts in prog's own form (format.ts). The
 * implementation throws `StoreError` with the message of prog's own driver, and keeps prog's foreign and unique keys.
 */
export type ItemRow = {
  readonly id: string
  readonly project: string
  /** "task" or "epic" */
  readonly type: string
  readonly title: string
  readonly description: string
  readonly definitionOfDone: string | null
  readonly status: string
  /** 1 high, 2 medium, 3 low; prog takes any integer. */
  readonly priority: number
  readonly parentId: string | null
  readonly createdAt: string
  readonly updatedAt: string
}

export type LogRow = { readonly message: string; readonly createdAt: string }

/** `itemId` waits for `dependsOn`. */
export type Dependency = { readonly itemId: string; readonly dependsOn: string }

export type LabelRow = {
  readonly id: string
  readonly name: string
  readonly project: string
  readonly color: string
  readonly createdAt: string
  readonly updatedAt: string
}

export type ConceptRow = {
  readonly id: string
  readonly name: string
  readonly project: string
  readonly summary: string
  readonly lastUpdated: string
  readonly learningCount: number
}

export type LearningRow = {
  readonly id: string
  readonly project: string
  readonly createdAt: string
  readonly updatedAt: string
  readonly taskId: string | null
  readonly summary: string
  readonly detail: string
  readonly files: readonly string[]
  /** "active", "stale" or "archived" */
  readonly status: string
}

type ItemChanges = Partial<
  Pick<ItemRow, "project" | "title" | "description" | "definitionOfDone" | "status" | "parentId">
> &
  Pick<ItemRow, "updatedAt">

export type ItemStore = {
  find(id: string): ItemRow | undefined
  /** Every item, oldest row first. */
  all(): ItemRow[]
  childStatuses(parentId: string): string[]
  insert(row: ItemRow): void
  /** False when no item has this id. */
  update(id: string, changes: ItemChanges): boolean
  remove(id: string): void
}

export type DependencyStore = {
  /** Every pair, ordered by both ids. */
  all(): Dependency[]
  /** An existing pair stays unchanged. */
  add(pair: Dependency): void
  /** Removes every pair with the item on either side. */
  removeOf(itemId: string): void
}

export type LogStore = {
  /** Oldest first. */
  of(itemId: string): LogRow[]
  add(itemId: string, message: string): void
  removeOf(itemId: string): void
}

export type ProjectStore = {
  /** In alphabetical order. */
  names(): string[]
  ensure(name: string, at: string): void
}

export type LabelStore = {
  /** In alphabetical order of names. */
  of(project: string): LabelRow[]
  insert(row: LabelRow): void
  /** False when the project has no label of this name. */
  rename(project: string, name: string, newName: string, at: string): boolean
  /** Detaches the label from every item and removes it. */
  remove(id: string): void
  /** Names of all attached labels in alphabetical order, by item. */
  namesByItem(): Map<string, string[]>
  attach(itemId: string, labelId: string): void
  /** False when the item does not have the label. */
  detach(itemId: string, labelId: string): boolean
}

export type ConceptChanges = Partial<Pick<ConceptRow, "name" | "summary">> & Pick<ConceptRow, "lastUpdated">

export type ConceptStore = {
  /** By number of learnings, the most first, then by name. */
  of(project: string): ConceptRow[]
  insert(row: Omit<ConceptRow, "summary" | "learningCount">): void
  /** False when the project has no concept of this name. */
  update(project: string, name: string, changes: ConceptChanges): boolean
}

export type LearningChanges = Partial<Pick<LearningRow, "summary" | "detail" | "status">> &
  Pick<LearningRow, "updatedAt">

export type LearningStore = {
  find(id: string): LearningRow | undefined
  /** Of a project, the newest first. */
  of(project: string): LearningRow[]
  /** The project's learnings that match an FTS5 query, the best first; throws StoreError when it does not parse. */
  search(project: string, query: string): LearningRow[]
  insert(row: LearningRow): void
  /** False when no learning has this id. */
  update(id: string, changes: LearningChanges): boolean
  /** Removes the learning and its concepts' links; false when no learning has this id. */
  remove(id: string): boolean
  tag(learningId: string, conceptId: string): void
  /** Names of the learning's concepts, in the order of the concepts' ids, as prog gives them. */
  conceptNames(learningId: string): string[]
}

/** The newest claim on a task; see claims.ts. Times are ISO 8601 in UTC. */
export type ClaimRow = {
  readonly taskId: string
  readonly holder: string
  /** The OpenCode session; "" for a claim by hand. */
  readonly session: string
  /** With the pid namespace, where the system has them. */
  readonly host: string
  readonly directory: string
  /** The process that holds it; 0 for a claim by hand. */
  readonly pid: number
  /** The start of that process, in the system's own form; "" where it does not tell. */
  readonly processStart: string
  readonly claimedAt: string
  /** "" once it is released. */
  readonly leaseUntil: string
  /** Grows with each new holder. */
  readonly fence: number
}

/** Claims are Baton's own: their table is created with the first one. */
export type ClaimStore = {
  find(taskId: string): ClaimRow | undefined
  /** The latest claim first. */
  all(): ClaimRow[]
  put(row: ClaimRow): void
}

export type LedgerStore = {
  readonly items: ItemStore
  readonly dependencies: DependencyStore
  readonly logs: LogStore
  readonly projects: ProjectStore
  readonly labels: LabelStore
  readonly concepts: ConceptStore
  readonly learnings: LearningStore
  readonly claims: ClaimStore
  /** The location of the rows, for the user. */
  readonly location: string
  /** Runs the work as one transaction: if it throws, nothing is kept. */
  write<T>(work: () => T): T
  close(): void
}
