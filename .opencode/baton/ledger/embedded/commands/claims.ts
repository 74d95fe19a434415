import {
  claimEntry,
  describeClaim,
  escapeUnprintable,
  findClaim,
  isClaimed,
  isUnstarted,
  ownName,
  putClaim,
  readClaims,
  readClaimsOf,
  readHost,
  readProcessStart,
} from "../claims.ts"
import { type Command, type CommandContext, JSON_FLAG, refuse } from "../command.ts"
import type { FlagSpec, Flags } from "../flags.ts"
import { goJson, padRight } from "../format.ts"
import { findItem, firstReady, isClosed, readItem, updateItem } from "../items.ts"
import type { ClaimRow, ItemRow, LedgerStore } from "../store.ts"

// Commands of Baton alone; prog has no claims.

/** A session renews its claim once a minute. */
const SESSION_LEASE_MS = 5 * 60_000
const HAND_LEASE_MS = 8 * 60 * 60_000

const SESSION_FLAG: FlagSpec = { name: "session", kind: "list", about: "of this OpenCode session; Baton's own" }

const iso = (ms: number): string => new Date(ms).toISOString()

const openTask = (store: LedgerStore, id: string): ItemRow => {
  const item = readItem(store, id)
  if (isClosed(item.status)) throw refuse(`${id} is ${item.status}; 'prog open ${id}' reopens it`)
  return item
}

const nextTask = (context: CommandContext, project: string, labels: readonly string[]): ItemRow => {
  if (project === "") throw refuse("project is required (-p)")
  // A claimed task is not ready: it was started.
  const next = firstReady(context.store(), project, labels)
  if (next === undefined) throw refuse(`no task of project ${project} is ready and free`)
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

/** Claims a task within a transaction, and starts it when it is open. */
const take = (context: CommandContext, item: ItemRow, flags: Flags): ClaimRow => {
  const store = context.store()
  const nowMs = context.nowMs()
  const asked = {
    holder: printableName("name", flags.text("as") || ownName(), OTHER_NAME),
    session_id: printableName("session", flags.list("session")[0] ?? "", "give the id that OpenCode shows"),
  }
  const before = findClaim(store, item.id)
  const current = isClaimed(before, item, nowMs) ? before : undefined
  const goesOn = current !== undefined && isOwn(current, asked, flags)
  if (current !== undefined && !goesOn)
    throw refuse(`${item.id} is claimed by ${describeClaim(current)}; 'prog release ${item.id}' ends that`)
  const pid = flags.integer("pid")
  const claim: ClaimRow = {
    ...asked,
    task_id: item.id,
    host: readHost(),
    directory: escapeUnprintable(process.cwd()),
    pid,
    process_start: pid === 0 ? "" : readProcessStart(pid),
    claimed_at: goesOn ? current.claimed_at : iso(nowMs),
    lease_until: iso(nowMs + (asked.session_id === "" ? HAND_LEASE_MS : SESSION_LEASE_MS)),
    fence: (before?.fence ?? 0) + (goesOn ? 0 : 1),
  }
  putClaim(store, claim)
  if (isUnstarted(item)) updateItem(store, item.id, { status: "in_progress", updated_at: context.timestamp() })
  return claim
}

/** The lease of a claim that ended with its task: its session may claim again when the task is opened again. */
const ENDED_WITH_TASK = "closed"

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
    { name: "pid", kind: "integer", about: "the claim ends with this process; Baton's own" },
    { name: "renew", kind: "switch", about: "extend the claims of the sessions given; Baton's own" },
  ],
  run: ({ args: [id], flags }, context) => {
    if (flags.has("renew")) return renew(context, flags.list("session"))
    if ((id === undefined) !== flags.has("next")) throw refuse("expected the id of a task, or --next")
    const taken = context.write((store) =>
      take(
        context,
        id === undefined ? nextTask(context, flags.text("project"), flags.list("label")) : openTask(store, id),
        flags,
      ),
    )
    if (flags.has("json")) return [goJson({ task: taken.task_id, ...claimEntry(taken) })]
    return [id === undefined ? taken.task_id : `Claimed ${taken.task_id}`]
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
