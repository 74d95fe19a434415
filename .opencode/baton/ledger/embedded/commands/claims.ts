import { claimEntry, describeClaim, isClaimed, ownName, readHost, readProcessStart } from "../claims.ts"
import {
  anyArguments,
  atMost,
  type Command,
  type CommandContext,
  CommandError,
  itemNotFound,
  lines,
  refuse,
  withErrorPrefix,
} from "../command.ts"
import type { FlagSpec, Flags } from "../flags.ts"
import { goJson, padRight } from "../format.ts"
import { isClosed, readyItems, withDerivedStatus } from "../items.ts"
import type { ClaimRow, ItemRow } from "../store.ts"

// Commands of Baton alone; prog has no claims.

/** A session renews its claim once a minute. */
const SESSION_LEASE_MS = 5 * 60_000
const HAND_LEASE_MS = 8 * 60 * 60_000

const SESSION_FLAG: FlagSpec = { name: "session", kind: "list", about: "of this OpenCode session; Baton's own" }

const iso = (ms: number): string => new Date(ms).toISOString()

const liveClaim = (context: CommandContext, taskId: string): ClaimRow | undefined => {
  const claim = context.store().claims.find(taskId)
  return isClaimed(claim, context.nowMs()) ? claim : undefined
}

const requireTask = (context: CommandContext, id: string): ItemRow => {
  const { items } = context.store()
  const row = withErrorPrefix("failed to get item", () => items.find(id))
  if (row === undefined) throw itemNotFound(id)
  const item = withDerivedStatus(row, items.childStatuses(id))
  if (isClosed(item.status)) throw refuse(`${id} is ${item.status}; 'prog open ${id}' reopens it`)
  return item
}

const nextTask = (context: CommandContext, project: string): ItemRow => {
  const next = readyItems(context.store(), project).find(({ id }) => liveClaim(context, id) === undefined)
  if (next === undefined) throw refuse(`no task of project ${project} is ready and free`)
  return next
}

/**
 * The claim goes on: of the same session, or made by hand under the name of a session that asks now, or under the name that
 * is given now.
 */
const isOwn = ({ holder, session }: ClaimRow, asked: Pick<ClaimRow, "holder" | "session">, flags: Flags): boolean =>
  session === ""
    ? (flags.text("as") !== "" || asked.session !== "") && holder === asked.holder
    : session === asked.session

/** Claims a task within a transaction, and starts it when it is open. */
const take = (context: CommandContext, item: ItemRow, flags: Flags): ClaimRow => {
  const { claims, items } = context.store()
  const nowMs = context.nowMs()
  const asked = { holder: flags.text("as") || ownName(), session: flags.list("session")[0] ?? "" }
  const before = claims.find(item.id)
  const current = isClaimed(before, nowMs) ? before : undefined
  const goesOn = current !== undefined && isOwn(current, asked, flags)
  if (current !== undefined && !goesOn)
    throw refuse(`${item.id} is claimed by ${describeClaim(current)}; 'prog release ${item.id}' ends that`)
  const pid = flags.integer("pid")
  const claim: ClaimRow = {
    ...asked,
    taskId: item.id,
    host: readHost(),
    directory: process.cwd(),
    pid,
    processStart: pid === 0 ? "" : readProcessStart(pid),
    claimedAt: goesOn ? current.claimedAt : iso(nowMs),
    leaseUntil: iso(nowMs + (asked.session === "" ? HAND_LEASE_MS : SESSION_LEASE_MS)),
    fence: (before?.fence ?? 0) + (goesOn ? 0 : 1),
  }
  claims.put(claim)
  if (item.type === "task" && item.status === "open")
    items.update(item.id, { status: "in_progress", updatedAt: context.timestamp() })
  return claim
}

/** Extends the claims of sessions. @returns the sessions that still have one */
const renew = (context: CommandContext, sessions: readonly string[]): string[] =>
  context.store().write(() => {
    const { claims } = context.store()
    const held = claims.all().filter(({ session, leaseUntil }) => leaseUntil !== "" && sessions.includes(session))
    for (const claim of held) claims.put({ ...claim, leaseUntil: iso(context.nowMs() + SESSION_LEASE_MS) })
    return [...new Set(held.map(({ session }) => session))]
  })

const claim: Command = {
  name: "claim",
  operands: "[<id>]",
  summary: "Take up a task, so that others see it is taken; starts an open one",
  arguments: atMost(1),
  usesFolderProject: true,
  flags: [
    { name: "next", kind: "switch", about: "the first task of the project that is ready and free; prints its id" },
    { name: "as", kind: "text", about: "the name to claim under ($BATON_HOLDER, else yours); given again, it renews" },
    { name: "json", kind: "switch", about: "print JSON" },
    SESSION_FLAG,
    { name: "pid", kind: "integer", about: "the claim ends with this process; Baton's own" },
    { name: "renew", kind: "switch", about: "extend the claims of the sessions given; Baton's own" },
  ],
  run: ({ args: [id], flags }, context) => {
    if (flags.has("renew")) return lines(renew(context, flags.list("session")))
    if ((id === undefined) !== flags.has("next"))
      throw new CommandError("usage", "expected the id of a task, or --next")
    const taken = context.store().write(() => {
      const item = id === undefined ? nextTask(context, flags.text("project")) : requireTask(context, id)
      return take(context, item, flags)
    })
    if (flags.has("json")) return lines([goJson({ task: taken.taskId, ...claimEntry(taken) })])
    return lines([id === undefined ? taken.taskId : `Claimed ${taken.taskId}`])
  },
}

const end = (context: CommandContext, claim: ClaimRow): void => context.store().claims.put({ ...claim, leaseUntil: "" })

const release: Command = {
  name: "release",
  operands: "[<id>]",
  summary: "End the claim on a task, another's too",
  arguments: atMost(1),
  flags: [SESSION_FLAG],
  run: ({ args: [id], flags }, context) =>
    context.store().write(() => {
      const sessions = flags.list("session")
      if ((id === undefined) !== sessions.length > 0) throw new CommandError("usage", "expected the id of a task")
      if (id === undefined) {
        const { claims } = context.store()
        const held = claims.all().filter(({ session, leaseUntil }) => leaseUntil !== "" && sessions.includes(session))
        for (const each of held) end(context, each)
        return lines(held.map(({ taskId }) => `Released ${taskId}`))
      }
      const current = liveClaim(context, id)
      if (current === undefined) throw refuse(`${id} is not claimed`)
      end(context, current)
      return lines([`Released ${id} from ${describeClaim(current)}`])
    }),
}

const claims: Command = {
  name: "claims",
  operands: "",
  summary: "List the tasks that are claimed: by whom, where, since when",
  arguments: anyArguments,
  flags: [{ name: "json", kind: "switch", about: "print JSON" }],
  run: ({ flags }, context) => {
    const store = context.store()
    const project = flags.text("project")
    const held = store.claims.all().filter((each) => {
      const item = store.items.find(each.taskId)
      if (item === undefined || (project !== "" && item.project !== project)) return false
      return isClaimed(each, context.nowMs()) && !isClosed(item.status)
    })
    if (flags.has("json")) return lines([goJson(held.map((each) => ({ task: each.taskId, ...claimEntry(each) })))])
    return lines(
      held.length === 0 ? ["No claims"] : held.map((each) => `${padRight(each.taskId, 12)} ${describeClaim(each)}`),
    )
  },
}

export const claimCommands: readonly Command[] = [claim, release, claims]
