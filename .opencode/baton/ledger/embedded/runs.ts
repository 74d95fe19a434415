import { isAlive, readHost } from "../../host/process-identity.ts"
import { cutText } from "../../host/text.ts"
import { ensureClaimTable, readCurrentClaim } from "./claims.ts"
import type { CommandContext } from "./command.ts"
import { localMinute } from "./format.ts"
import { findItem, firstReady, isClosed, updateItem } from "./items.ts"
import { attemptsText, type EndKind, isAttempt, isOfCheck, kindOfEnd, ruleOf } from "./run-ends.ts"
import type { Cell, ItemRow, LedgerStore, QueueRow, RunRow } from "./store.ts"

/*
 * A run is an agent's work on a task from its session's first message to the end of its turn or process. A task has at most one
 * open run of a worker: it ends, and gives the task back, in the transaction that finds out about it.
 */

/** Beside prog's own tables and without foreign keys, so that prog can go on deleting tasks. */
const TABLES = [
  `CREATE TABLE IF NOT EXISTS baton_runs (
	task_id TEXT NOT NULL,
	n INTEGER NOT NULL,
	worker TEXT NOT NULL,
	session_id TEXT NOT NULL,
	host TEXT NOT NULL,
	pid INTEGER NOT NULL,
	directory TEXT NOT NULL,
	branch TEXT NOT NULL,
	started TEXT NOT NULL,
	ended TEXT NOT NULL,
	kind TEXT NOT NULL,
	detail TEXT NOT NULL,
	next_try TEXT NOT NULL,
	tools INTEGER NOT NULL,
	tokens INTEGER NOT NULL,
	cost REAL NOT NULL,
	attempts INTEGER NOT NULL,
	backoff INTEGER NOT NULL,
	PRIMARY KEY (task_id, n)
)`,
  "CREATE INDEX IF NOT EXISTS baton_open_runs ON baton_runs (worker, session_id) WHERE ended = ''",
  `CREATE TABLE IF NOT EXISTS baton_queue (
	task_id TEXT PRIMARY KEY,
	attempts_from INTEGER NOT NULL,
	not_before TEXT NOT NULL,
	blocked TEXT NOT NULL,
	answer TEXT NOT NULL
)`,
]

/** Makes the tables; within a transaction that writes. */
export const ensureRunTables = (store: LedgerStore): void => {
  for (const table of TABLES) store.run(table)
}

const hasRunTables = (store: LedgerStore): boolean =>
  store.all("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'baton_queue'").length > 0

const selectRuns = (store: LedgerStore, rest: string, ...values: readonly Cell[]): RunRow[] =>
  store.all(`SELECT r.* FROM baton_runs r ${rest}`, ...values)

/** The runs that go on or ended since a time (ISO 8601; "" for all), in the order of their start; none before there are tables. */
export const readAllRuns = (store: LedgerStore, since: string): RunRow[] =>
  hasRunTables(store)
    ? selectRuns(store, "WHERE r.ended = '' OR r.ended >= ? ORDER BY r.started, r.task_id, r.n", since)
    : []

/** A task's runs, the oldest first; none before there are tables. */
export const readRuns = (store: LedgerStore, taskID: string): RunRow[] =>
  hasRunTables(store) ? selectRuns(store, "WHERE r.task_id = ? ORDER BY r.n", taskID) : []

export const findRun = (store: LedgerStore, taskID: string, n: number): RunRow | undefined =>
  selectRuns(store, "WHERE r.task_id = ? AND r.n = ?", taskID, n)[0]

/** The number of a task's newest run; 0 for none. */
export const newestRun = (store: LedgerStore, taskID: string): number =>
  store.all<{ n: number | null }>("SELECT MAX(n) AS n FROM baton_runs WHERE task_id = ?", taskID)[0]?.n ?? 0

/** The open runs of a session. */
export const openRunsOf = (store: LedgerStore, sessionID: string): RunRow[] =>
  hasRunTables(store) ? selectRuns(store, "WHERE r.ended = '' AND r.session_id = ?", sessionID) : []

/** The open run of a worker on a task. */
export const openRunOn = (store: LedgerStore, taskID: string): RunRow | undefined =>
  selectRuns(store, "WHERE r.ended = '' AND r.worker != '' AND r.task_id = ?", taskID)[0]

/**
 * The open runs of workers on a project's tasks that may be over, those of this host first: of tasks in progress without those whose lease
 * holds and whose process cannot be looked at from here (a lease that ended in another way is no time); of others, whose agent may still be
 * at the end of its turn, those whose process can be looked at. CROSS JOIN keeps the order: there are few open runs. Its values: the project,
 * the time, and this host three times.
 */
export const OPEN_RUNS_QUERY = `
  SELECT r.* FROM baton_runs r CROSS JOIN items i ON i.id = r.task_id LEFT JOIN baton_claims c ON c.task_id = r.task_id
  WHERE r.ended = '' AND r.worker != '' AND i.project = ? AND CASE i.status WHEN 'in_progress'
    THEN NOT (IFNULL(c.lease_until, '') BETWEEN ? AND '3' AND (c.pid = 0 OR c.host != ?))
    ELSE r.host = ? AND r.pid != 0 END
  ORDER BY r.host != ?, r.started`

export const readQueueRow = (store: LedgerStore, taskID: string): QueueRow =>
  store.all<QueueRow>("SELECT * FROM baton_queue WHERE task_id = ?", taskID)[0] ?? {
    task_id: taskID,
    attempts_from: 0,
    not_before: "",
    blocked: "",
    answer: "",
  }

/** The notes on all tasks, by id; none before there are tables. */
export const readQueueRows = (store: LedgerStore): ReadonlyMap<string, QueueRow> =>
  new Map(hasRunTables(store) ? store.all<QueueRow>("SELECT * FROM baton_queue").map((row) => [row.task_id, row]) : [])

export const putQueueRow = (store: LedgerStore, row: QueueRow): void => store.insert("baton_queue", row, "OR REPLACE")

export const iso = (ms: number): string => new Date(ms).toISOString()

/** The limits of a run. */
type Policy = Pick<RunRow, "attempts" | "backoff">

export const DEFAULT_POLICY: Policy = { attempts: 3, backoff: 60 }

type NewRun = Pick<RunRow, "task_id" | "worker" | "session_id" | "host" | "pid" | "directory"> & Partial<Policy>

export const beginRun = (store: LedgerStore, run: NewRun, nowMs: number): RunRow => {
  const row: RunRow = {
    ...DEFAULT_POLICY,
    ...run,
    n: newestRun(store, run.task_id) + 1,
    branch: "",
    started: iso(nowMs),
    ended: "",
    kind: "",
    detail: "",
    next_try: "",
    tools: 0,
    tokens: 0,
    cost: 0,
  }
  store.insert("baton_runs", row)
  return row
}

export const updateRun = (store: LedgerStore, { task_id, n }: RunRow, changes: Partial<RunRow>): void =>
  void store.update("baton_runs", { task_id, n }, changes)

/** The facts about a run that ends. */
export type SeenEnd = Partial<Pick<RunRow, "branch" | "detail" | "next_try" | "tools" | "tokens" | "cost">> & {
  readonly kind: EndKind
}

const BLOCKED_LINE = /^Blocked:\s*(.+)/s

/** The reason for which the agent says in the log, since its run began, that it needs a person. */
const findBlockedLine = (store: LedgerStore, run: RunRow): string | undefined => {
  const since = run.started.replace("T", " ").replace(/\..*$/, "")
  const lines = store.all<{ message: string }>(
    "SELECT message FROM logs WHERE item_id = ? AND created_at >= ? ORDER BY id DESC",
    run.task_id,
    since,
  )
  return lines.flatMap(({ message }) => BLOCKED_LINE.exec(message)?.[1] ?? [])[0]
}

/** Ends without progress that the agent may have explained in the log. */
const EXPLAINED: ReadonlySet<EndKind> = new Set(["idle", "unfinished"])

const DETAIL_CHARACTERS = 300

const oneLine = (text: string): string =>
  cutText(text.replaceAll(/[\p{Cc}\p{Zl}\p{Zp}\s]+/gu, " ").trim(), DETAIL_CHARACTERS)

const judge = (store: LedgerStore, run: RunRow, item: ItemRow, seen: SeenEnd): { kind: EndKind; detail: string } => {
  const kind = kindOfEnd(item.status, seen.kind)
  const asked = EXPLAINED.has(kind) ? findBlockedLine(store, run) : undefined
  if (asked !== undefined) return { kind: "question", detail: oneLine(asked) }
  return { kind, detail: kind === seen.kind ? oneLine(seen.detail ?? "") : "" }
}

const isClosedByAgent = (status: string): boolean => status === "reviewing" || isClosed(status)

type Given = { readonly status?: string; readonly text: string; readonly queue?: Partial<QueueRow> }

/** A task that was blocked and is open was opened by hand: its attempts count anew. */
export const forgiveOpened = (store: LedgerStore, taskID: string): void => {
  const row = readQueueRow(store, taskID)
  if (row.blocked === "") return
  putQueueRow(store, { ...row, blocked: "", not_before: "", attempts_from: newestRun(store, taskID) })
}

/** Decides on the task's next status, and how its log says it. */
const giveBack = (store: LedgerStore, run: RunRow, kind: EndKind, detail: string, nowMs: number): Given => {
  const rule = ruleOf(kind)
  if (rule.becomes === "as it is") return { text: "" }
  if (rule.becomes === "blocked") {
    const blocked = `${kind}: ${detail}`
    return {
      status: "blocked",
      text: `; blocked until a person answers: prog unblock ${run.task_id} "answer"`,
      queue: { blocked },
    }
  }
  const { attempts_from } = readQueueRow(store, run.task_id)
  const counted = readRuns(store, run.task_id).filter(
    (each) => each.worker !== "" && each.n > attempts_from && isAttempt(each),
  )
  if (!isAttempt({ kind, session_id: run.session_id })) return { status: "open", text: "; open again" }
  if (counted.length >= run.attempts) {
    const blocked = attemptsText(counted.map((each) => each.kind))
    return {
      status: "blocked",
      text: `; blocked: ${blocked}; prog unblock ${run.task_id} opens it`,
      queue: { blocked },
    }
  }
  const not_before = rule.waits ? iso(nowMs + run.backoff * 1000) : ""
  const waits = not_before === "" ? "" : `, not before ${localMinute(not_before.replace("T", " "))}`
  return {
    status: "open",
    text: `; open again (attempt ${counted.length} of ${run.attempts})${waits}`,
    queue: { not_before },
  }
}

/**
 * Ends a run within a transaction, gives its task back where it was a worker's, and says so in the log.
 *
 * @param isHolder its claim holds, or no other has taken the task since
 */
export const endRun = (context: CommandContext, run: RunRow, seen: SeenEnd, isHolder = true): EndKind => {
  const store = context.store()
  const item = findItem(store, run.task_id)
  const nowMs = context.nowMs()
  const { kind, detail } = item === undefined ? { kind: seen.kind, detail: "" } : judge(store, run, item, seen)
  updateRun(store, run, { ...seen, kind, detail, ended: iso(nowMs) })
  if (item === undefined || run.worker === "" || !isHolder) return kind
  const given = giveBack(store, run, kind, detail, nowMs)
  if (given.status !== undefined && (!isClosedByAgent(item.status) || isOfCheck(kind)))
    updateItem(store, item.id, { status: given.status, updated_at: context.timestamp() })
  if (given.queue) putQueueRow(store, { ...readQueueRow(store, item.id), ...given.queue })
  const why = detail === "" ? kind : `${kind}: ${detail}`
  store.insert("logs", { item_id: item.id, message: `Run ${run.n} ended: ${why}${given.text}` })
  return kind
}

/** A task that is not in progress has no claim, but its agent may still speak. */
const goesOn = (store: LedgerStore, run: RunRow, item: ItemRow, nowMs: number): boolean =>
  item.status === "in_progress" ? readCurrentClaim(store, item, nowMs) !== undefined : isAlive(run.pid)

const whyOver = ({ session_id, host }: RunRow, here: string): string => {
  if (session_id === "") return "no session began"
  return host === here ? "its process is gone" : "its claim was not renewed"
}

/**
 * Ends the runs of workers whose claim is over, until one of them leaves a task that is ready; else takes the first of the queue.
 * Within a transaction.
 */
export const takeNext = (context: CommandContext, project: string, labels: readonly string[]): ItemRow | undefined => {
  const store = context.store()
  const host = readHost()
  ensureRunTables(store)
  ensureClaimTable(store)
  for (const run of store.all<RunRow>(OPEN_RUNS_QUERY, project, iso(context.nowMs()), host, host, host)) {
    const item = findItem(store, run.task_id)
    if (item === undefined || goesOn(store, run, item, context.nowMs())) continue
    endRun(context, run, { kind: "killed", detail: whyOver(run, host) })
    const left = firstReady(store, project, labels, iso(context.nowMs()), run.task_id)
    if (left !== undefined) return left
  }
  return firstReady(store, project, labels, iso(context.nowMs()))
}
