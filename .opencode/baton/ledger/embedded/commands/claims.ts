import { readHost, startOfProcess } from "../../../host/process-identity.ts"
import {
  claimEntry,
  describeClaim,
  ENDED_WITH_TASK,
  escapeUnprintable,
  findClaim,
  isClaimed,
  isUnstarted,
  LONGEST_BY_HAND_MS,
  ownName,
  putClaim,
  readClaims,
  readClaimsOf,
} from "../claims.ts"
import { type Command, type CommandContext, JSON_FLAG, refuse } from "../command.ts"
import type { FlagSpec, Flags } from "../flags.ts"
import { goJson, padRight } from "../format.ts"
import { findItem, isClosed, readItem, updateItem } from "../items.ts"
import {
  beginRun,
  DEFAULT_POLICY,
  endRun,
  ensureRunTables,
  forgiveOpened,
  iso,
  openRunOn,
  openRunsOf,
  putQueueRow,
  readQueueRow,
  readRuns,
  takeNext,
  updateRun,
} from "../runs.ts"
import { type ClaimRow, type ItemRow, LedgerError, type LedgerStore, type RunRow } from "../store.ts"

// Commands of Baton alone; prog has no claims.

/** A session and a worker renew their claim once a minute. */
export const SESSION_LEASE_MS = 5 * 60_000
const HAND_LEASE_MS = 8 * 60 * 60_000

const SESSION_FLAG: FlagSpec = { name: "session", kind: "list", about: "of this OpenCode session; Baton's own" }

const openTask = (store: LedgerStore, id: string): ItemRow => {
  const item = readItem(store, id)
  if (isClosed(item.status)) throw refuse(`${id} is ${item.status}; 'prog open ${id}' reopens it`)
  return item
}

class NoneLeftError extends LedgerError {}

const nextTask = (context: CommandContext, flags: Flags): ItemRow => {
  const [project, labels] = [flags.text("project"), flags.list("label")]
  if (project === "") throw refuse("project is required (-p)")
  const next = takeNext(context, project, labels)
  if (next === undefined) throw new NoneLeftError(`no task of project ${project} is ready and free`)
  return next
}

/** Claims of these sessions that were not released. */
const heldBy = (store: LedgerStore, sessions: readonly string[]): ClaimRow[] =>
  readClaimsOf(store, sessions).filter(({ lease_until }) => lease_until !== "")

/**
 * The claim goes on: of the same session, or made by hand under the name of a session that asks now, or under the name that
 * is given now.
 */
const isOwn = (
  { holder, session_id }: ClaimRow,
  asked: Pick<ClaimRow, "holder" | "session_id">,
  flags: Flags,
): boolean =>
  session_id === ""
    ? (flags.text("as") !== "" || asked.session_id !== "") && holder === asked.holder
    : session_id === asked.session_id

/** @throws LedgerError for a name that is not printable text on one line */
const printableName = (what: string, name: string, remedy: string): string => {
  const escaped = escapeUnprintable(name)
  if (escaped === name) return name
  throw refuse(`expected a ${what} of printable characters on one line, received "${escaped}"; ${remedy}`)
}

const OTHER_NAME = "give a plain one with --as, or in BATON_HOLDER"

const UNITS: Readonly<Record<string, number>> = { m: 60_000, h: 60 * 60_000, d: 24 * 60 * 60_000 }

/** @throws LedgerError for anything but a time such as 90m, 8h or 3d */
const parseLease = (text: string): number => {
  const [, count = "", unit = ""] = /^(\d+)([mhd])$/.exec(text) ?? []
  const ms = Number(count) * (UNITS[unit] ?? Number.NaN)
  if (ms > 0 && ms <= LONGEST_BY_HAND_MS) return ms
  throw refuse(`expected --for as a time of at most 31 days, such as 90m, 8h or 3d, received "${text}"`)
}

/** A session's claim and a worker's are renewed; a person's lasts as they say. */
const leaseOf = (flags: Flags, isSession: boolean): number => {
  if (flags.given("for")) return parseLease(flags.text("for"))
  return isSession || flags.has("next") ? SESSION_LEASE_MS : HAND_LEASE_MS
}

const isOwnProcess = (run: RunRow, { host, pid }: Pick<ClaimRow, "host" | "pid">): boolean =>
  run.host === host && run.pid === pid

/** Begins the run of a session, or of a worker that has none yet. */
const noteOwnRun = (context: CommandContext, claim: Omit<ClaimRow, "fence">, flags: Flags): void => {
  const store = context.store()
  const { task_id, session_id, host, pid, directory, holder } = claim
  const isWorkers = flags.has("next")
  const own = session_id === "" ? [] : openRunsOf(store, session_id)
  if (own.some((run) => run.task_id === task_id && isOwnProcess(run, claim))) return
  for (const run of own) endRun(context, run, { kind: "killed", detail: "" }, false)
  if (session_id === "" && !isWorkers) return
  const [attempts, backoff] = [flags.integer("attempts"), flags.integer("backoff")]
  const worker = isWorkers ? holder : ""
  beginRun(store, { task_id, worker, session_id, host, pid, directory, attempts, backoff }, context.nowMs())
}

/** Notes who works on the task from now on: the worker's run goes on in its session, or another run begins. */
const noteRun = (context: CommandContext, claim: ClaimRow, flags: Flags, goesOn: boolean): void => {
  const store = context.store()
  const { task_id, session_id, pid, directory, holder } = claim
  const open = openRunOn(store, task_id)
  // Its session may begin after the worker was killed, and the worker's claim has ended with it.
  const isItsSession = session_id !== "" && open?.session_id === "" && open.worker === holder
  if (open !== undefined && (goesOn || isItsSession)) {
    updateRun(store, open, { session_id, pid, directory, ...(flags.has("person") ? { worker: "" } : {}) })
    return
  }
  if (open !== undefined) endRun(context, open, { kind: "killed", detail: `${holder} has the task since` }, false)
  noteOwnRun(context, claim, flags)
}

/** Another has the task. */
class HeldError extends LedgerError {}

/** Claims a task within a transaction, and starts it when it is open. */
const take = (context: CommandContext, item: ItemRow, flags: Flags): ClaimRow => {
  const store = context.store()
  const nowMs = context.nowMs()
  ensureRunTables(store)
  const asked = {
    holder: printableName("name", flags.text("as") || ownName(), OTHER_NAME),
    session_id: printableName("session", flags.list("session")[0] ?? "", "give the id that OpenCode shows"),
  }
  const before = findClaim(store, item.id)
  const current = isClaimed(before, item, nowMs) ? before : undefined
  const goesOn = current !== undefined && isOwn(current, asked, flags)
  const pid = flags.integer("pid")
  const place = { host: readHost(), pid, directory: escapeUnprintable(process.cwd()) }
  if (current !== undefined && !goesOn) {
    // In the same files, beside the holder.
    if (asked.session_id !== "") noteOwnRun(context, { ...current, ...asked, ...place }, flags)
    throw new HeldError(`${item.id} is claimed by ${describeClaim(current)}; 'prog release ${item.id}' ends that`)
  }
  const claim: ClaimRow = {
    ...asked,
    ...place,
    task_id: item.id,
    process_start: pid === 0 ? "" : startOfProcess(pid),
    claimed_at: goesOn ? current.claimed_at : iso(nowMs),
    lease_until: iso(nowMs + leaseOf(flags, asked.session_id !== "")),
    fence: (before?.fence ?? 0) + (goesOn ? 0 : 1),
  }
  putClaim(store, claim)
  forgiveOpened(store, item.id)
  noteRun(context, claim, flags, goesOn)
  if (isUnstarted(item)) updateItem(store, item.id, { status: "in_progress", updated_at: context.timestamp() })
  return claim
}

/** Extends the claims of sessions. @returns the sessions that have one, with "reopened" where it ended */
const renew = (context: CommandContext, sessions: readonly string[]): string[] =>
  context.write((store) =>
    heldBy(store, sessions).map((claim) => {
      const item = findItem(store, claim.task_id)
      const isOver = item !== undefined && isClosed(item.status)
      const isReopened = !isOver && (claim.lease_until === ENDED_WITH_TASK || (item !== undefined && isUnstarted(item)))
      const lease_until = isOver || isReopened ? ENDED_WITH_TASK : iso(context.nowMs() + SESSION_LEASE_MS)
      putClaim(store, { ...claim, lease_until })
      return isReopened ? `${claim.session_id} reopened` : claim.session_id
    }),
  )

const RECENT_RUNS = 3

/** Reads what a worker needs to go on: its run, workers' before it, and a person's answer, which is given once. */
const takeRunNotes = (store: LedgerStore, item: ItemRow) => {
  // A person's own session is not a worker's to resume.
  const runs = readRuns(store, item.id).filter(({ worker }) => worker !== "")
  const row = readQueueRow(store, item.id)
  if (row.answer !== "") putQueueRow(store, { ...row, answer: "" })
  return {
    title: item.title,
    definition_of_done: item.definition_of_done ?? "",
    run: runs.at(-1)?.n ?? 0,
    earlier: runs.slice(0, -1).slice(-RECENT_RUNS),
    answer: row.answer,
  }
}

type Taken = { readonly claim: ClaimRow } & Partial<ReturnType<typeof takeRunNotes>>

const claim: Command = {
  name: "claim",
  operands: "[<id>]",
  summary: "Take up a task, so that others see it is taken; starts an open one",
  arguments: { least: 0, most: 1 },
  usesFolderProject: true,
  flags: [
    { name: "next", kind: "switch", about: "the first task of the project that is ready and free; prints its id" },
    { name: "as", kind: "text", about: "the name to claim under ($BATON_HOLDER, else yours); given again, it renews" },
    { name: "label", short: "l", kind: "list", about: "with --next: only a task with every label" },
    JSON_FLAG,
    SESSION_FLAG,
    {
      name: "for",
      kind: "text",
      about: "how long it holds: 90m, 8h, 3d (8h; with --next 5m, which the session renews)",
    },
    { name: "pid", kind: "integer", about: "the claim ends with this process; Baton's own" },
    {
      name: "attempts",
      kind: "integer",
      about: "with --next: runs that count until the task is blocked",
      fallback: DEFAULT_POLICY.attempts,
    },
    {
      name: "backoff",
      kind: "integer",
      about: "with --next: seconds until a task that got stuck is handed out again",
      fallback: DEFAULT_POLICY.backoff,
    },
    { name: "person", kind: "switch", about: "a person is at the session: the run is not a worker's; Baton's own" },
    { name: "renew", kind: "switch", about: "extend the claims of the sessions given; Baton's own" },
  ],
  run: ({ args: [id], flags }, context) => {
    if (flags.has("renew")) return renew(context, flags.list("session"))
    if ((id === undefined) !== flags.has("next")) throw refuse("expected the id of a task, or --next")
    const work = (store: LedgerStore): Taken => {
      const item = id === undefined ? nextTask(context, flags) : openTask(store, id)
      return { claim: take(context, item, flags), ...(flags.has("next") ? takeRunNotes(store, item) : {}) }
    }
    // What was noted of runs is kept where the task is another's, or none is left.
    const taken = context.write((store) => {
      try {
        return work(store)
      } catch (error) {
        if (error instanceof HeldError || error instanceof NoneLeftError) return error
        throw error
      }
    })
    if (taken instanceof LedgerError) throw taken
    const { claim, ...notes } = taken
    if (flags.has("json")) return [goJson({ task: claim.task_id, ...claimEntry(claim), ...notes })]
    return [id === undefined ? claim.task_id : `Claimed ${claim.task_id}`]
  },
}

const end = (store: LedgerStore, claim: ClaimRow): void => putClaim(store, { ...claim, lease_until: "" })

const release: Command = {
  name: "release",
  operands: "[<id>]",
  summary: "End the claim on a task, another's too",
  arguments: { least: 0, most: 1 },
  flags: [SESSION_FLAG],
  run: ({ args: [id], flags }, context) =>
    context.write((store) => {
      const sessions = flags.list("session")
      if ((id === undefined) !== sessions.length > 0) throw refuse("expected the id of a task")
      if (id === undefined) {
        const held = heldBy(store, sessions)
        for (const each of held) end(store, each)
        return held.map(({ task_id }) => `Released ${task_id}`)
      }
      const [current, item] = [findClaim(store, id), findItem(store, id)]
      if (item === undefined || !isClaimed(current, item, context.nowMs())) throw refuse(`${id} is not claimed`)
      end(store, current)
      return [`Released ${id} from ${describeClaim(current)}`]
    }),
}

const claims: Command = {
  name: "claims",
  summary: "List the tasks that are claimed: by whom, where, since when",
  flags: [JSON_FLAG],
  run: ({ flags }, context) => {
    const store = context.store()
    const project = flags.text("project")
    const held = readClaims(store).filter((each) => {
      const item = findItem(store, each.task_id)
      if (item === undefined || (project !== "" && item.project !== project)) return false
      return isClaimed(each, item, context.nowMs())
    })
    if (flags.has("json")) return [goJson(held.map((each) => ({ task: each.task_id, ...claimEntry(each) })))]
    if (held.length === 0) return ["No claims"]
    return held.map((each) => `${padRight(each.task_id, 12)} ${describeClaim(each)}`)
  },
}

export const claimCommands: readonly Command[] = [claim, release, claims]
