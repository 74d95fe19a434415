import type { LearningLedger } from "./learning-calls.ts"

/** A record of the ledger as `prog show ID --json` gives it, without what Baton never reads. */
export type LedgerTask = {
  readonly id: string
  readonly title: string
  readonly status: string
  readonly type: string
  readonly project: string
  /** Specification and handoff section together; see description.ts. Empty when the task has none. */
  readonly description: string
  readonly definitionOfDone?: string
  /** Oldest first. `createdAt` is RFC 3339 in UTC, whole seconds. */
  readonly logs: readonly { readonly message: string; readonly createdAt: string }[]
}

/** A task as `prog list --json` gives it, without what Baton never reads. */
export type TaskSummary = { readonly id: string; readonly title: string; readonly status: string }

export type TaskRead =
  | { readonly kind: "found"; readonly task: LedgerTask }
  | { readonly kind: "unknown" }
  /** `answered`: the program ran, and what it said of this task is an error or no task. */
  | { readonly kind: "unavailable"; readonly reason: string; readonly answered?: boolean }

export type LedgerWrite =
  | { readonly kind: "written" }
  /** The ledger has no task with this id. */
  | { readonly kind: "unknown" }
  /** The program ran and refused; nothing was written. */
  | { readonly kind: "refused"; readonly reason: string }
  /** Not reached, or not heard of again: the write may have happened. */
  | { readonly kind: "unavailable"; readonly reason: string }

export type CallOptions = {
  /** Milliseconds from the call, waiting for earlier calls included. */
  readonly deadlineMs?: number
}

/** Which program keeps the ledger of a directory. */
export type LedgerProgram =
  | { readonly kind: "real"; readonly path: string }
  | { readonly kind: "embedded"; readonly path: string }
  | { readonly kind: "unavailable"; readonly reason: string }

/** A program on PATH that is called prog and is not the ledger. */
export type ForeignProgram = { readonly path: string; readonly reason: string }

export type LedgerStatus = { readonly program: LedgerProgram; readonly foreign: readonly ForeignProgram[] }

/** The ledger of one directory. No call throws; every call has a deadline; one program runs at a time. */
export type Ledger = LearningLedger & {
  /** Default deadline 2 s. */
  readTask(id: string, options?: CallOptions): Promise<TaskRead>
  /** All tasks and epics of the database; undefined when they cannot be read. Default deadline 2 s. */
  listTasks(options?: CallOptions): Promise<readonly TaskSummary[] | undefined>
  /** Appends one log entry. Default deadline 5 s. */
  appendLog(id: string, message: string, options?: CallOptions): Promise<LedgerWrite>
  /** Replaces the whole description. Default deadline 5 s. Callers merge first: see description.ts. */
  replaceDescription(id: string, description: string, options?: CallOptions): Promise<LedgerWrite>
  /**
   * The text as it can be passed to the program: unchanged when it fits, else cut with a pointer to the full text,
   * which is then kept under `.opencode/state/handoffs/`. The same text always gives the same result.
   * @param room bytes to leave free for what the caller puts around it
   * @throws NoRoomError when no room is left for the pointer; the file system's error when the full text cannot be kept
   */
  shorten(id: string, text: string, room?: number): Promise<string>
  /** For doctor: finds the program when no call has done so yet. */
  status(options?: CallOptions): Promise<LedgerStatus>
}
