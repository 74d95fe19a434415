import { readHost } from "../../../host/process-identity.ts"
import { cutText } from "../../../host/text.ts"
import { CONVERSATION_LABEL } from "../../labels.ts"
import { escapeUnprintable, findClaim, ownName, putClaim, readCurrentClaim } from "../claims.ts"
import { type Command, type CommandContext, JSON_FLAG, refuse } from "../command.ts"
import { goJson, localMinute, padRight } from "../format.ts"
import { findItem, readItem, readItems, readyItems, requireItem, updateItem } from "../items.ts"
import { isEndKind, isOfCheck } from "../run-ends.ts"
import {
  beginRun,
  endRun,
  ensureRunTables,
  findRun,
  iso,
  newestRun,
  openRunOn,
  openRunsOf,
  putQueueRow,
  readAllRuns,
  readQueueRow,
  readQueueRows,
  readRuns,
  type SeenEnd,
  updateRun,
} from "../runs.ts"
import type { ItemRow, LedgerStore, RunRow } from "../store.ts"

// Commands of Baton alone: the runs of agents on tasks, and the workers that start them.

const runs: Command = {
  name: "runs",
  operands: "[<id>]",
  summary: "List the runs of agents on a task, or on all: when, by whom, how they ended",
  arguments: { least: 0, most: 1 },
  flags: [
    { name: "since", kind: "text", about: "only runs that ended, or go on, since this time (ISO 8601)" },
    JSON_FLAG,
  ],
  run: ({ args: [id = ""], flags }, context) => {
    const store = context.store()
    const [project, since] = [flags.text("project"), flags.text("since")]
    if (id !== "") requireItem(store, id)
    const all = id === "" ? readAllRuns(store, since) : readRuns(store, id)
    const found = all.flatMap((run) => {
      const item = findItem(store, run.task_id)
      if (project !== "" && item?.project !== project) return []
      if (run.ended !== "" && run.ended < since) return []
      return [{ ...run, project: item?.project ?? "", title: item?.title ?? "", status: item?.status ?? "deleted" }]
    })
    if (flags.has("json")) return [goJson(found)]
    if (found.length === 0) return ["No runs"]
    return found.map((run) => {
      const end = run.ended === "" ? "goes on" : [run.kind, run.detail].filter((part) => part !== "").join(": ")
      const who = run.worker === "" ? "by hand" : run.worker
      return [padRight(run.task_id, 12), padRight(String(run.n), 3), localMinute(iso8601(run.started)), who, end].join(
        " ",
      )
    })
  },
}

/** ISO 8601 in a form that format.ts reads. */
const iso8601 = (at: string): string => at.replace("T", " ").replace("Z", " +0000 UTC")

const unblock: Command = {
  name: "unblock",
  operands: "<id> [answer]",
  summary: "Open a blocked task again; the answer goes to its log and to the next agent",
  arguments: { least: 1 },
  run: ({ args: [id = "", ...words] }, context) =>
    context.write((store) => {
      const { status } = readItem(store, id)
      if (status !== "blocked") throw refuse(`${id} is ${status}, not blocked`)
      ensureRunTables(store)
      const answer = words.join(" ")
      const attempts_from = newestRun(store, id)
      putQueueRow(store, { ...readQueueRow(store, id), attempts_from, not_before: "", blocked: "", answer })
      updateItem(store, id, { status: "open", updated_at: context.timestamp() })
      store.insert("logs", { item_id: id, message: answer === "" ? "Unblocked" : `Unblocked: ${answer}` })
      return [`Unblocked ${id}`]
    }),
}

/** Begun, and not over: an agent's, a person's or one that waits for an answer. */
const BEGUN: ReadonlySet<string> = new Set(["in_progress", "blocked", "reviewing"])
const COUNTED = ["open", "in_progress", "blocked", "reviewing", "done", "canceled"] as const

/** A worker's run on it goes on. */
const isAtWork = (context: CommandContext, item: ItemRow): boolean =>
  item.status === "in_progress" &&
  openRunOn(context.store(), item.id) !== undefined &&
  readCurrentClaim(context.store(), item, context.nowMs()) !== undefined

const queue: Command = {
  name: "queue",
  summary: "Show what a project's workers have before them: ready, later, blocked and why",
  usesFolderProject: true,
  flags: [JSON_FLAG],
  run: ({ flags }, context) => {
    const store = context.store()
    const project = flags.text("project")
    const tasks = readItems(store).filter(
      (item) => item.type === "task" && item.project === project && !item.labels.includes(CONVERSATION_LABEL),
    )
    const rows = readQueueRows(store)
    const now = iso(context.nowMs())
    const ready = readyItems(store, project)
    const later = ready.filter(({ id }) => (rows.get(id)?.not_before ?? "") > now)
    const blocked = tasks.filter(({ status }) => status === "blocked")
    const next = later.map(({ id }) => rows.get(id)?.not_before ?? "").toSorted()[0] ?? ""
    const entry = ({ id, title }: (typeof tasks)[number]) => ({ task: id, title, reason: rows.get(id)?.blocked ?? "" })
    const counts = Object.fromEntries(
      COUNTED.map((status) => [status, tasks.filter((item) => item.status === status).length]),
    )
    const defined = ({ id: task, title, definition_of_done }: ItemRow) => ({ task, title, definition_of_done })
    const toDo = tasks.filter(({ status }) => status === "open").map(defined)
    const begun = tasks.filter(({ status }) => BEGUN.has(status)).map(defined)
    const found = {
      ready: ready.length - later.length,
      later: later.length,
      next,
      waiting: (counts.open ?? 0) - ready.length,
      at_work: tasks.filter((item) => isAtWork(context, item)).length,
      counts,
      blocked: blocked.map(entry),
    }
    if (flags.has("json")) return [goJson({ ...found, tasks: toDo, begun })]
    return [
      `${found.ready} ready, ${found.later} later${next === "" ? "" : ` (from ${localMinute(iso8601(next))})`}, ${counts.in_progress} in progress, ${blocked.length} blocked`,
      ...found.blocked.map(
        ({ task, title, reason }) => `${padRight(task, 12)} ${title}${reason === "" ? "" : `: ${reason}`}`,
      ),
    ]
  },
}

export const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** @throws LedgerError for anything but JSON */
export const parseJSON = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    throw refuse(`expected JSON, received "${cutText(text, 80)}"`)
  }
}

export const textAt = (record: Record<string, unknown>, name: string): string => {
  const value = record[name]
  return typeof value === "string" ? value : ""
}

export const countAt = (record: Record<string, unknown>, name: string): number => {
  const value = record[name]
  return typeof value === "number" && Number.isFinite(value) && value > 0 ? value : 0
}

/** @throws LedgerError for an unknown kind */
const toSeenEnd = (given: Record<string, unknown>): SeenEnd => {
  const { kind } = given
  if (!isEndKind(kind)) throw refuse(`expected a kind of end, received "${String(kind)}"`)
  const detail = textAt(given, "detail")
  const next_try = textAt(given, "next_try")
  const branch = textAt(given, "branch")
  // A second judge of the same end may know less.
  return {
    kind,
    detail,
    ...(next_try === "" ? {} : { next_try }),
    ...(branch === "" ? {} : { branch }),
    ...(given.tools === undefined ? {} : { tools: Math.round(countAt(given, "tools")) }),
    ...(given.tokens === undefined ? {} : { tokens: Math.round(countAt(given, "tokens")) }),
    ...(given.cost === undefined ? {} : { cost: countAt(given, "cost") }),
  }
}

/** The open runs of a session's process. */
const ownRuns = (store: LedgerStore, session: string, pid: unknown): RunRow[] =>
  openRunsOf(store, session).filter((run) => run.host === readHost() && run.pid === pid)

/** The run of a session that asked for no claim: the one that its worker's claim stands for, else a new one. */
const beginLate = (context: CommandContext, given: Record<string, unknown>): RunRow[] => {
  const store = context.store()
  const [task_id, session_id, pid] = [textAt(given, "task"), textAt(given, "session"), countAt(given, "pid")]
  if (findItem(store, task_id) === undefined) return []
  const place = { session_id, pid, directory: escapeUnprintable(process.cwd()) }
  const open = openRunOn(store, task_id)
  const claim = findClaim(store, task_id)
  if (open?.session_id === "" && claim?.session_id === "" && claim.holder === ownName()) {
    updateRun(store, open, place)
    return [{ ...open, ...place }]
  }
  return [beginRun(store, { task_id, worker: "", host: readHost(), ...place }, context.nowMs())]
}

/** The run that is named by session and process, or by task and number. */
const findRuns = (context: CommandContext, given: Record<string, unknown>): RunRow[] => {
  const [session, task] = [textAt(given, "session"), textAt(given, "task")]
  if (session === "") return [findRun(context.store(), task, countAt(given, "n"))].filter((run) => run !== undefined)
  const own = ownRuns(context.store(), session, given.pid)
  return own.length > 0 || given.late !== true ? own : beginLate(context, given)
}

/** Its claim holds, or no other worker has taken the task since: a session by hand may have begun beside it. */
export const isHolder = (context: CommandContext, run: RunRow): boolean => {
  const store = context.store()
  const item = findItem(store, run.task_id)
  const claim = item && readCurrentClaim(store, item, context.nowMs())
  if (claim === undefined) return !readRuns(store, run.task_id).some((each) => each.n > run.n && each.worker !== "")
  return claim.session_id === "" ? claim.holder === run.worker : claim.session_id === run.session_id
}

const endOne = (context: CommandContext, given: Record<string, unknown>) => {
  const store = context.store()
  const seen = toSeenEnd(given)
  return findRuns(context, given).map(({ task_id, n }) => {
    const run = findRun(store, task_id, n)
    if (run === undefined) return { task: task_id, n }
    // What has ended stays as it was judged, except for a check that came since. What a person canceled stays so.
    const isChecked = isOfCheck(seen.kind) && run.kind !== seen.kind && findItem(store, task_id)?.status !== "canceled"
    if (run.ended === "" || isChecked) {
      const holds = isHolder(context, run)
      endRun(context, run, seen, holds)
      const claim = findClaim(store, task_id)
      if (claim !== undefined && holds) putClaim(store, { ...claim, lease_until: "" })
    }
    return reportRun(store, task_id, n)
  })
}

export const reportRun = (store: LedgerStore, task: string, n: number) => {
  const run = findRun(store, task, n)
  const {
    session_id = "",
    ended = "",
    kind = "",
    detail = "",
    next_try = "",
    tools = 0,
    tokens = 0,
    cost = 0,
  } = run ?? {}
  const status = findItem(store, task)?.status ?? "deleted"
  return { task, n, session: session_id, ended, kind, detail, next_try, tools, tokens, cost, status }
}

const BETWEEN_LOOKS_MS = 10

/** Waits for the claim of a session that has asked for it: a turn that fails at once ends before it is made. */
const awaitClaim = (context: CommandContext, given: Record<string, unknown>): void => {
  const endsAt = context.nowMs() + countAt(given, "wait_ms")
  const session = textAt(given, "session")
  const hasRun = (): boolean => ownRuns(context.store(), session, given.pid).length > 0
  while (context.nowMs() < endsAt && !hasRun()) Bun.sleepSync(BETWEEN_LOOKS_MS)
}

const runEnd: Command = {
  name: "run-end",
  operands: "<json>",
  summary: "End runs and give their tasks back; Baton's own",
  arguments: { least: 1, most: 1 },
  run: ({ args: [json = ""] }, context) => {
    const parsed = parseJSON(json)
    if (!Array.isArray(parsed)) throw refuse("expected a list of ends")
    const given = parsed.filter(isRecord)
    for (const each of given) awaitClaim(context, each)
    return [
      goJson(
        context.write((store) => {
          ensureRunTables(store)
          return given.flatMap((each) => endOne(context, each))
        }),
      ),
    ]
  },
}

export const runCommands: readonly Command[] = [runs, unblock, queue, runEnd]
