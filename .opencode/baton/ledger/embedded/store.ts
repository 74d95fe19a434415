/** A refused command. Exit code 1. */
export class LedgerError extends Error {
  /** SQLite's extended result code; 0 when it was not SQLite that refused. */
  readonly code: number

  constructor(message: string, code = 0, cause?: unknown) {
    super(message, { cause })
    this.name = "LedgerError"
    this.code = code
  }
}

export type Cell = string | number | null

/** A row to be written: cells by the name of their column. */
export type Cells = Readonly<Record<string, Cell>>

/** A ledger's database, open. It keeps prog's foreign and unique keys; every failure is a LedgerError. */
export type LedgerStore = {
  /** The location of the rows, for the user. */
  readonly location: string
  all<Row>(query: string, ...values: readonly Cell[]): Row[]
  /** @returns the number of changed rows */
  run(query: string, ...values: readonly Cell[]): number
  insert(table: string, row: Cells, otherwise?: "OR IGNORE" | "OR REPLACE"): void
  /** Changes the rows that have these cells. @returns false when there is none */
  update(table: string, where: Cells, changes: Cells): boolean
  /** Runs the work as one transaction: if it throws, nothing is kept. */
  write<T>(work: () => T): T
  close(): void
}

/*
 * Rows as they are stored, with the columns of the database. Times are texts in prog's own form (format.ts). prog cannot
 * read a row with NULL in another column than those that say so here.
 */

export type ItemRow = {
  readonly id: string
  readonly project: string
  /** "task" or "epic" */
  readonly type: string
  readonly title: string
  /** prog adds to a row with NULL, though it cannot show it. */
  readonly description: string | null
  readonly definition_of_done: string | null
  readonly status: string
  /** 1 high, 2 medium, 3 low; prog takes any integer. */
  readonly priority: number
  readonly parent_id: string | null
  readonly created_at: string
  readonly updated_at: string
}

export type LogRow = { readonly message: string; readonly created_at: string }

/** `item_id` waits for `depends_on`. */
export type Dependency = { readonly item_id: string; readonly depends_on: string }

export type LabelRow = {
  readonly id: string
  readonly name: string
  readonly color: string | null
  readonly created_at: string
}

export type ConceptRow = {
  readonly id: string
  readonly name: string
  readonly summary: string | null
  readonly last_updated: string
  /** Learnings of any status. */
  readonly learning_count: number
}

export type LearningRow = {
  readonly id: string
  readonly created_at: string
  readonly task_id: string | null
  readonly summary: string
  readonly detail: string
  /** A list in JSON. */
  readonly files: string
  /** "active", "stale" or "archived" */
  readonly status: string
}

/** The newest claim on a task; see claims.ts. Times are ISO 8601 in UTC. */
export type ClaimRow = {
  readonly task_id: string
  readonly holder: string
  /** The OpenCode session; "" for a claim by hand. */
  readonly session_id: string
  /** With the pid namespace, where the system has them. */
  readonly host: string
  readonly directory: string
  /** The process that holds it; 0 for a claim by hand. */
  readonly pid: number
  /** The start of that process, in the system's own form; "" where it does not tell. */
  readonly process_start: string
  readonly claimed_at: string
  /** "" once it is released, "closed" once it ended with its task. */
  readonly lease_until: string
  /** Grows with each new holder. */
  readonly fence: number
}

/** One run of an agent on a task; see runs.ts. Times are ISO 8601 in UTC, "" for none. */
export type RunRow = {
  readonly task_id: string
  /** 1 for the task's first run. */
  readonly n: number
  /** The name of the script or worker that took the task from the queue; "" for a person's session. */
  readonly worker: string
  /** The OpenCode session; "" until one has begun. */
  readonly session_id: string
  /** With the pid namespace, as in a claim. */
  readonly host: string
  readonly pid: number
  readonly directory: string
  /** The branch it ended on; "" where it is not known. */
  readonly branch: string
  readonly started: string
  readonly ended: string
  /** A kind of end; "" while it goes on. */
  readonly kind: string
  readonly detail: string
  /** The time from which the provider wants to be asked again. */
  readonly next_try: string
  /** Calls of tools, of its subagents too. */
  readonly tools: number
  readonly tokens: number
  /** In dollars, as OpenCode counts. */
  readonly cost: number
  /** Counted attempts after which the task is blocked. */
  readonly attempts: number
  /** Seconds until a task whose agent did nothing, or got stuck, is handed out again. */
  readonly backoff: number
}

/** The queue's notes on a task. */
export type QueueRow = {
  readonly task_id: string
  /** Only runs after this one count as attempts. */
  readonly attempts_from: number
  /** Not handed out before; "" for at once. */
  readonly not_before: string
  /** The reason for a person to look at it; "" for none. */
  readonly blocked: string
  /** The answer of `unblock`, for the next run. */
  readonly answer: string
}

/** A `baton work` that runs; see commands/runs.ts. */
export type WorkerRow = {
  readonly id: string
  readonly host: string
  readonly pid: number
  readonly process_start: string
  readonly project: string
  readonly directory: string
  readonly slots: number
  /** "working", "paused", "draining" or "waiting" */
  readonly state: string
  /** The state that a person wants: "active", "paused", "draining" or "stopped". */
  readonly wanted: string
  readonly note: string
  readonly started: string
  readonly seen: string
}
