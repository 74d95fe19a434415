import { cutText } from "../host/text.ts"
/**
 * `baton outbox`. Exits with 0 when all was listed or delivered, with 1 when a record was not, with 2 for a wrong command line.
 */

import { basename, resolve } from "node:path"
import { parseArgs } from "node:util"
import { chooseProject, complain, localMinute, print, printableLine, printJSON, runCommand } from "../host/cli.ts"
import { acquireWithin } from "../host/file-lock.ts"
import { describeError, type Log, SILENT } from "../host/log.ts"
import { createProcessRunner } from "../host/process.ts"
import { isFolder } from "../host/project.ts"
import { createStateFolder } from "../host/state.ts"
import { createLedger } from "./client.ts"
import { createOutbox, createOutboxLock } from "./outbox.ts"
import {
  createOutboxStore,
  describeEntry,
  type OutboxEntry,
  type OutboxRecord,
  orderingKey,
  type ParkedEntry,
  recordID,
} from "./outbox-store.ts"
import { chooseParked, keepNewer, taskOf } from "./parked.ts"

type Request = { readonly root: string; readonly json: boolean } & (
  | { readonly action: "list" }
  | { readonly action: "retry"; readonly names: readonly string[] }
)

/** Parses `[list | retry [RECORD …]] [DIR] [--json]`. @throws Error in words for the user */
const parse = (args: readonly string[], here: string): Request => {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: { json: { type: "boolean", default: false } },
  })
  const last = positionals.at(-1)
  // A project may have a folder of that name.
  const isAction = positionals.length === 1 && (last === "list" || last === "retry")
  const folder = last !== undefined && !isAction && isFolder(resolve(here, last)) ? resolve(here, last) : undefined
  const root = chooseProject(folder, here)
  const [action = "list", ...names] = folder === undefined ? positionals : positionals.slice(0, -1)
  const common = { root, json: values.json }
  switch (action) {
    case "list":
      if (names.length > 0) throw new Error(`expected a project folder, received '${names.join(" ")}'`)
      return { ...common, action }
    case "retry":
      return { ...common, action, names }
    default:
      throw new Error(`expected list, retry or a folder, received '${action}'`)
  }
}

/** A record as `--json` prints it. Times are ISO 8601. */
type Reported = {
  readonly id: string
  readonly state: "waiting" | "parked" | "delivered"
  /** Why it waits or is parked. */
  readonly reason?: string
  readonly parkedAt?: string
  /** Absent with the two below if the file holds no record. */
  readonly createdAt?: string
  readonly entry?: OutboxEntry
}

const report = (file: string, state: Reported["state"], reason?: string, record?: OutboxRecord): Reported => ({
  id: recordID(file),
  state,
  ...(reason === undefined ? {} : { reason }),
  ...(record && { createdAt: record.createdAt, entry: record.entry }),
})

const LINE_CHARACTERS = 300

const plain = (text: string): string => cutText(printableLine(text), LINE_CHARACTERS)

const textOf = (entry: OutboxEntry): string => {
  switch (entry.kind) {
    case "log":
      return entry.message
    case "handoff":
      return entry.section
    case "learning":
      return entry.summary
    case "retire":
      return entry.reason
    case "withdraw":
      return `what ${entry.messageID} said, which was undone`
  }
}

const firstLine = (entry: OutboxEntry): string => textOf(entry).trim().split("\n")[0] ?? ""

const renderListed = ({ id, state, reason = "", parkedAt, createdAt, entry }: Reported): string => {
  const record = entry && createdAt ? [localMinute(createdAt), describeEntry(entry), firstLine(entry)] : []
  const since = parkedAt ? ` since ${localMinute(parkedAt)}` : ""
  return [[id, ...record].map(plain).join("  "), `  ${state}${since}: ${plain(reason)}`].join("\n")
}

const renderOutcome = ({ id, state, reason, entry }: Reported): string => {
  const record = entry ? [describeEntry(entry), firstLine(entry)] : []
  return [state.padEnd(9), ...[id, ...record, ...(reason === undefined ? [] : [reason])].map(plain)].join("  ")
}

const NEXT = `
Deliver parked records again: baton outbox retry`

const FAILED_EXIT_CODE = 1
const READ_DEADLINE_MS = 10_000
const DELIVERY_DEADLINE_MS = 60_000
const LOCK_DEADLINE_MS = 10_000

const reasonOf = (error: unknown): string => (error instanceof Error ? error.message : describeError(error))

const openOutbox = (root: string) => {
  const state = createStateFolder(root)
  const ledger = createLedger({ run: createProcessRunner({ shell: undefined }), directory: root, log: SILENT, state })
  return { state, ledger, store: createOutboxStore(state) }
}
type Place = ReturnType<typeof openOutbox>

const readTask = (ledger: Place["ledger"], id: string) => ledger.readTask(id, { deadlineMs: READ_DEADLINE_MS })

/** The reason why an entry would not reach the ledger now; undefined if it would be tried. */
const findObstacle = async ({ ledger }: Place, entry: OutboxEntry): Promise<string | undefined> => {
  if (!("taskID" in entry)) {
    const read = await ledger.readLearnings(entry.project, { deadlineMs: READ_DEADLINE_MS })
    return read.kind === "found" ? undefined : read.reason
  }
  const read = await readTask(ledger, entry.taskID)
  if (read.kind === "unknown") return `the ledger has no task ${entry.taskID}`
  return read.kind === "found" ? undefined : read.reason
}

const listWaiting = async (place: Place): Promise<Reported[]> => {
  const obstacles = new Map<string, string>()
  const found: Reported[] = []
  for (const name of await place.store.list()) {
    const read = await place.store.read(name)
    if (read.kind === "gone") continue
    if (read.kind !== "record") {
      found.push(report(name, "waiting", read.reason))
      continue
    }
    const { entry } = read.record
    const key = orderingKey(entry)
    const obstacle =
      obstacles.get(key) ?? (await findObstacle(place, entry)) ?? "it was not delivered yet; the ledger answers"
    obstacles.set(key, obstacle)
    found.push(report(name, "waiting", obstacle, read.record))
  }
  return found
}

const reportParked = ({ file, reason, since, record }: ParkedEntry): Reported => ({
  ...report(file, "parked", reason, record),
  ...(since === "" ? {} : { parkedAt: since }),
})

const list = async (place: Place, json: boolean): Promise<number> => {
  const all = [...(await listWaiting(place)), ...(await place.store.listParked()).map(reportParked)]
  const hint = all.some(({ state }) => state === "parked") ? [NEXT] : []
  if (json) printJSON(all)
  else print(all.length === 0 ? "No records" : [...all.map(renderListed), ...hint].join("\n"))
  return 0
}

/** @throws Error when another process keeps the lock */
const withLock = async <T>({ store }: Place, work: () => Promise<T>): Promise<T> => {
  const held = await acquireWithin(createOutboxLock(store), LOCK_DEADLINE_MS)
  if (!held) throw new Error("another process is delivering records; try again when it is done")
  try {
    return await work()
  } finally {
    await held.release()
  }
}

/** @returns the task's description. @throws Error unless the ledger has the task */
const readDescription = async ({ ledger }: Place, id: string): Promise<string> => {
  const read = await readTask(ledger, id)
  if (read.kind === "found") return read.task.description.untrusted
  throw new Error(read.kind === "unknown" ? `the ledger has no task ${id}; prog list shows its tasks` : read.reason)
}

/**
 * Moves records back into the outbox, to their places in the order.
 *
 * @returns why those that stay are still parked, by name
 */
const unpark = async (place: Place, chosen: readonly ParkedEntry[]): Promise<ReadonlyMap<string, string>> => {
  const obstacles = new Map<string, string>()
  const descriptions = new Map<string, Promise<string>>()
  for (const { file, record } of chosen) {
    if (!record) continue
    const id = taskOf(record.entry)
    try {
      if (id !== undefined && !descriptions.has(id)) descriptions.set(id, readDescription(place, id))
      const entry = keepNewer(record.entry, (await descriptions.get(id ?? "")) ?? "")
      await place.store.unpark(basename(file), entry === record.entry ? undefined : { ...record, entry })
    } catch (error) {
      obstacles.set(basename(file), reasonOf(error))
    }
  }
  return obstacles
}

/** Delivers all that waits. @returns why a record still waits, if one does */
const deliver = async ({ ledger, state }: Place): Promise<(name: string) => string> => {
  const reasons = new Map<string, string>()
  const note: Log["warn"] = (_message, { name, reason } = {}) => {
    if (typeof name === "string" && typeof reason === "string") reasons.set(name, reason)
  }
  const outbox = createOutbox({ ledger, state, log: { ...SILENT, info: note, warn: note } })
  await outbox.flush(DELIVERY_DEADLINE_MS)
  const { lastFailure = `it was not its turn within ${DELIVERY_DEADLINE_MS / 1000} s` } = await outbox.status()
  outbox.stop()
  return (name) => reasons.get(name) ?? lastFailure
}

const send = async (place: Place, names: readonly string[]): Promise<readonly Reported[]> => {
  const { store } = place
  const prepare = async () => {
    const chosen = chooseParked(await store.listParked(), names)
    const obstacles = await unpark(place, chosen)
    const left = new Map(chosen.map(({ file, record }) => [basename(file), record]))
    const sent = new Map<string, OutboxRecord | undefined>()
    for (const name of await store.list()) {
      const read = await store.read(name)
      if (left.has(name) || names.length === 0) sent.set(name, read.kind === "record" ? read.record : undefined)
    }
    return { obstacles, sent: new Map([...left, ...sent]) }
  }
  const hasParked = (await store.listParked()).length > 0
  const { obstacles, sent } = hasParked ? await withLock(place, prepare) : await prepare()
  const whyWaiting = await deliver(place)
  const waiting = new Set(await store.list())
  const parked = new Map((await store.listParked()).map((one) => [basename(one.file), one]))
  return [...sent].map(([name, record]) => {
    if (waiting.has(name)) return report(name, "waiting", whyWaiting(name), record)
    const still = parked.get(name)
    if (still) return { ...reportParked(still), reason: obstacles.get(name) ?? still.reason }
    return report(name, "delivered", undefined, record)
  })
}

const run = async (request: Request): Promise<number> => {
  const place = openOutbox(request.root)
  try {
    if (request.action === "list") return await list(place, request.json)
    const outcome = await send(place, request.names)
    if (request.json) printJSON(outcome)
    else print(outcome.length === 0 ? "No records" : outcome.map(renderOutcome).join("\n"))
    return outcome.every(({ state }) => state === "delivered") ? 0 : FAILED_EXIT_CODE
  } catch (error) {
    complain(`outbox: ${reasonOf(error)}`)
    return FAILED_EXIT_CODE
  }
}

await runCommand({ name: "outbox", parse, projectsOf: ({ root }) => [root], run })
