import { type Untrusted, untrusted } from "../host/quoted.ts"
import { isRecord } from "../host/schema.ts"
import { cutText } from "../host/text.ts"

/** The claim on a task, from the embedded ledger. */
export type TaskClaim = {
  /** The OpenCode session; "" for a claim by hand. */
  readonly session: string
  /** Made by hand under the name that sessions here claim under. */
  readonly isOwn: boolean
  /** Who, where and since when, in words. */
  readonly summary: Untrusted
}

export type ClaimOutcome =
  | { readonly kind: "claimed" }
  /** By another: who, where and since when, in words. */
  | { readonly kind: "held"; readonly summary: string }
  /** The task is unknown or closed. */
  | { readonly kind: "refused"; readonly reason: string }
  | { readonly kind: "unavailable"; readonly reason: string }

/** By session. A claim that ended because its task is opened again may be made again; one that was released is left out. */
export type RenewedClaims = ReadonlyMap<string, "claimed" | "reopened">

/** The end of a session's run on a task. */
export type RunEnd = {
  readonly session: string
  /** The task, for a run that no claim of the session stands for. */
  readonly task: string
  readonly kind: "provider" | "killed" | "context" | "idle" | "unfinished" | "question" | "permission refused"
  /** In words for a person; "" for none. */
  readonly detail: string
  /** Calls of tools, of subagents too. */
  readonly tools: number
  readonly tokens: number
  /** In dollars. */
  readonly cost: number
  /** The time from which the provider wants to be asked again, ISO 8601; "" where it does not say. */
  readonly next_try?: string
  readonly branch?: string
}

/** Claims on tasks, always kept by the embedded ledger. No call throws; default deadline 5 s. */
export type ClaimLedger = {
  /** Claims a task for a session of this process, and starts it when it is open. @param options `isPerson`: one is at the session */
  claimTask(
    id: string,
    sessionID: string,
    options?: CallOptions & { readonly isPerson?: boolean },
  ): Promise<ClaimOutcome>
  /** Extends the claims of sessions. @returns undefined when the ledger does not answer */
  renewClaims(sessionIDs: readonly string[], options?: CallOptions): Promise<RenewedClaims | undefined>
  releaseClaims(sessionIDs: readonly string[]): Promise<void>
  /** Ends the runs of sessions of this process, and with them their claims. */
  endRuns(ends: readonly RunEnd[]): Promise<void>
  /** Ends the run of a session before it returns: OpenCode 1.2.15 exits right after the turn. @param isBegun its claim has been asked for */
  endRunNow(end: RunEnd, isBegun: boolean): void
}

/** A task from `prog show ID --json`, with the fields that Baton uses. */
export type LedgerTask = {
  readonly id: string
  readonly title: Untrusted
  readonly status: Untrusted
  /** Specification and handoff section together; see description.ts. Empty when the task has none. */
  readonly description: Untrusted
  readonly definitionOfDone?: Untrusted
  /** Oldest first. `createdAt` is RFC 3339 in UTC, whole seconds. */
  readonly logs: readonly { readonly message: Untrusted; readonly createdAt: string }[]
  /** In alphabetical order. */
  readonly labels: readonly string[]
  readonly claim?: TaskClaim
}

/** A task from `prog list --json`, with the fields that Baton uses. */
export type TaskSummary = {
  readonly id: string
  readonly title: Untrusted
  readonly status: Untrusted
  /** `prog ready` does not tell them. */
  readonly labels?: readonly string[]
}

export type TaskRead =
  | { readonly kind: "found"; readonly task: LedgerTask }
  | { readonly kind: "unknown" }
  /**
   * `answered`: the program ran, but printed an error or no task. `missingDatabase`: the path at which there is no ledger; a
   * later call finds one that was put there.
   */
  | {
      readonly kind: "unavailable"
      readonly reason: string
      readonly answered?: boolean
      readonly missingDatabase?: string
    }

export type LedgerWrite =
  | { readonly kind: "written" }
  /** The ledger has no task with this id. */
  | { readonly kind: "unknown" }
  /** The program ran and refused; nothing was written. */
  | { readonly kind: "refused"; readonly reason: string }
  /** The program was not reached or did not answer: the write may have happened. */
  | { readonly kind: "unavailable"; readonly reason: string }

export type CallOptions = {
  /** Milliseconds from the call, including the wait for earlier calls. */
  readonly deadlineMs?: number
}

export type LedgerProgram =
  | { readonly kind: "real"; readonly path: string }
  | { readonly kind: "embedded"; readonly path: string }
  | { readonly kind: "unavailable"; readonly reason: string }

/** A program on PATH with the name prog that is not the ledger. */
export type ForeignProgram = { readonly path: string; readonly reason: string }

export type LedgerStatus = { readonly program: LedgerProgram; readonly foreign: readonly ForeignProgram[] }

export type NewLearning = {
  /** prog's name of the project. */
  readonly project: string
  readonly summary: string
  readonly detail: string
  /** At least one. */
  readonly concepts: readonly string[]
  readonly files: readonly string[]
}

type LearningsRead =
  | { readonly kind: "found"; readonly learnings: readonly LedgerLearning[] }
  | { readonly kind: "unavailable"; readonly reason: string; readonly answered?: boolean }

/** Reads and writes learnings in the ledger. No call throws; each has its deadline. */
export type LearningLedger = {
  /** All of a project, including stale ones, newest first. Default deadline 2 s. */
  readLearnings(project: string, options?: CallOptions): Promise<LearningsRead>
  addLearning(learning: NewLearning): Promise<LedgerWrite>
  editLearning(id: string, detail: string): Promise<LedgerWrite>
  /** Marks it as stale: it is kept, but shown only when stale ones are requested. */
  retireLearning(id: string, reason: string): Promise<LedgerWrite>
}

type TaskAdded = { readonly kind: "added"; readonly id: string } | { readonly kind: "failed"; readonly reason: string }

/** The ledger of one directory. No call throws; every call has a deadline; one program runs at a time. */
export type Ledger = LearningLedger &
  ClaimLedger & {
    /** False when the ledger holds no learning of any project. Runs no program. */
    mayHaveLearnings(): Promise<boolean>
    /** Default deadline 2 s. `withClaim`: also where the real prog is used, which has no claims. */
    readTask(id: string, options?: CallOptions & { readonly withClaim?: boolean }): Promise<TaskRead>
    /** All tasks and epics of the database, or the tasks of a project; undefined when they cannot be read. Default deadline 2 s. */
    listTasks(options?: CallOptions & { readonly project?: string }): Promise<readonly TaskSummary[] | undefined>
    /** Tasks of a project, or of all, with nothing left to wait for; undefined when they cannot be read. Default deadline 2 s. */
    readyTasks(project: string, options?: CallOptions): Promise<readonly TaskSummary[] | undefined>
    /** The claims that hold on a project's tasks, by the task's id; undefined when they cannot be read. Default deadline 2 s. */
    listClaims(project: string, options?: CallOptions): Promise<ReadonlyMap<string, TaskClaim> | undefined>
    /** Adds an open task. @param task `description`: cut to what the program can receive */
    addTask(
      task: { project: string; title: string; description: string; label?: string },
      options?: CallOptions,
    ): Promise<TaskAdded>
    /** Puts a label on a task, or takes it off. Default deadline 5 s. */
    setLabel(id: string, label: string, how: "label" | "unlabel", options?: CallOptions): Promise<LedgerWrite>
    /** Cancels, opens or starts a task. Default deadline 5 s. */
    setStatus(id: string, how: "cancel" | "open" | "start", options?: CallOptions): Promise<LedgerWrite>
    /** Replaces title and description. Default deadline 5 s. */
    rewriteTask(id: string, task: { title: string; description: string }, options?: CallOptions): Promise<LedgerWrite>
    /** Sets a task to done. Default deadline 5 s. */
    finishTask(id: string, options?: CallOptions): Promise<LedgerWrite>
    /** Appends one log entry. Default deadline 5 s. */
    appendLog(id: string, message: string, options?: CallOptions): Promise<LedgerWrite>
    /** Replaces the whole description. Default deadline 5 s. Callers merge first: see description.ts. */
    replaceDescription(id: string, description: string, options?: CallOptions): Promise<LedgerWrite>
    /**
     * Fits a text to the program's limit: unchanged if it fits, else cut with a pointer to the full text, which is then kept
     * under `.opencode/state/long-texts/`. The same text always gives the same result.
     *
     * @param room bytes to leave free for the text that the caller adds around it
     * @throws TextTooLongError when the pointer does not fit; the file system's error when the full text cannot be kept
     */
    shorten(id: string, text: string, room?: number): Promise<string>
    /** For doctor: finds the program if no call has done so yet. */
    status(): Promise<LedgerStatus>
  }

/*
 * Parsed by hand and not with zod: a session's first request waits for its task, and loading zod takes 17 ms of OpenCode's
 * only thread (docs/adr/0003).
 */

const unexpected = (what: string, value: unknown): TypeError =>
  new TypeError(`expected ${what}, received ${cutText(JSON.stringify(value) ?? "nothing", 80)}`)

const toText = (value: unknown, what: string): string => {
  if (typeof value === "string") return value
  throw unexpected(what, value)
}

const toRecord = (value: unknown, what: string): Record<string, unknown> => {
  if (isRecord(value)) return value
  throw unexpected(what, value)
}

const toList = (value: unknown, what: string): unknown[] => {
  if (Array.isArray(value)) return value
  throw unexpected(what, value)
}

const textAt = (record: Record<string, unknown>, key: string): string => toText(record[key], `text in '${key}'`)

/** Text, or undefined if prog printed null or nothing. */
const optionalTextAt = (record: Record<string, unknown>, key: string): string | undefined =>
  record[key] === undefined || record[key] === null ? undefined : textAt(record, key)

/** Texts; none if prog printed null or nothing. */
const textsAt = (record: Record<string, unknown>, key: string): string[] =>
  toList(record[key] ?? [], `a list in '${key}'`).map((text) => toText(text, `texts in '${key}'`))

const toClaim = (value: unknown): TaskClaim => {
  const claim = toRecord(value, "a claim")
  return { session: textAt(claim, "session"), isOwn: claim.own === true, summary: untrusted(textAt(claim, "summary")) }
}

/**
 * Parses the output of `prog claims --json`.
 *
 * @returns the claims by the id of their task
 * @throws SyntaxError or TypeError when it is not a list of claims
 */
export const parseClaims = (json: string): ReadonlyMap<string, TaskClaim> =>
  new Map(
    toList(JSON.parse(json), "a list of claims").map((claim) => [
      textAt(toRecord(claim, "a claim"), "task"),
      toClaim(claim),
    ]),
  )

/**
 * Parses the output of `prog show ID --json` (prog v0.17.0).
 *
 * @throws SyntaxError or TypeError when it is not a task
 */
export const parseTaskJson = (json: string): LedgerTask => {
  const shown = toRecord(JSON.parse(json), "a task")
  const definitionOfDone = optionalTextAt(shown, "definition_of_done")
  return {
    id: textAt(shown, "id"),
    title: untrusted(textAt(shown, "title")),
    status: untrusted(textAt(shown, "status")),
    description: untrusted(optionalTextAt(shown, "description") ?? ""),
    ...(definitionOfDone ? { definitionOfDone: untrusted(definitionOfDone) } : {}),
    logs: toList(shown.logs ?? [], "a list of log entries").map((entry) => {
      const log = toRecord(entry, "a log entry")
      return { message: untrusted(textAt(log, "message")), createdAt: textAt(log, "created_at") }
    }),
    labels: textsAt(shown, "labels"),
    ...(shown.claim === undefined ? {} : { claim: toClaim(shown.claim) }),
  }
}

/**
 * Parses the output of `prog list --json` or `prog ready --json` (prog v0.17.0), of which the second has no status and no labels.
 *
 * @throws SyntaxError or TypeError when it is not a list of tasks
 */
export const parseTaskList = (json: string): readonly TaskSummary[] =>
  toList(JSON.parse(json), "a list of tasks").map((each) => {
    const task = toRecord(each, "a task")
    return {
      id: textAt(task, "id"),
      title: untrusted(textAt(task, "title")),
      status: untrusted(optionalTextAt(task, "status") ?? "open"),
      ...(task.labels === undefined ? {} : { labels: textsAt(task, "labels") }),
    }
  })

/** A learning from `prog context --json`. */
export type LedgerLearning = {
  readonly id: string
  readonly summary: string
  readonly detail: string
  readonly concepts: readonly string[]
  readonly files: readonly string[]
  /** RFC 3339. */
  readonly createdAt: string
  /** "active" or "stale" */
  readonly status: string
}

/**
 * Parses the output of `prog context -p PROJECT --summary --include-stale --json` (prog v0.17.0).
 *
 * @throws SyntaxError or TypeError when it is not a list of learnings
 */
export const parseLearningsJson = (json: string): LedgerLearning[] =>
  toList(JSON.parse(json), "a list of learnings").map((each) => {
    const learning = toRecord(each, "a learning")
    return {
      id: textAt(learning, "id"),
      summary: textAt(learning, "summary"),
      detail: optionalTextAt(learning, "detail") ?? "",
      concepts: textsAt(learning, "concepts"),
      files: textsAt(learning, "files"),
      createdAt: textAt(learning, "created_at"),
      status: textAt(learning, "status"),
    }
  })
