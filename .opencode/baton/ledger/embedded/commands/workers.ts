import { hasEnded, readHost, startOfProcess } from "../../../host/process-identity.ts"
import { putClaim, readCurrentClaim } from "../claims.ts"
import { type Command, JSON_FLAG, refuse } from "../command.ts"
import { goJson, padRight } from "../format.ts"
import { findItem } from "../items.ts"
import { ensureRunTables, findRun, iso } from "../runs.ts"
import type { LedgerStore, WorkerRow } from "../store.ts"
import { SESSION_LEASE_MS } from "./claims.ts"
import { countAt, isHolder, isRecord, parseJSON, reportRun, textAt } from "./runs.ts"

// Commands of Baton alone: the `baton work` programs that run.

const WORKERS = `CREATE TABLE IF NOT EXISTS baton_workers (
	id TEXT PRIMARY KEY,
	host TEXT NOT NULL,
	pid INTEGER NOT NULL,
	process_start TEXT NOT NULL,
	project TEXT NOT NULL,
	directory TEXT NOT NULL,
	slots INTEGER NOT NULL,
	state TEXT NOT NULL,
	wanted TEXT NOT NULL,
	note TEXT NOT NULL,
	started TEXT NOT NULL,
	seen TEXT NOT NULL
)`

const readWorkers = (store: LedgerStore): WorkerRow[] => store.all("SELECT * FROM baton_workers ORDER BY started, id")

/** Its process runs, or it is on another host and was seen within a lease. */
const isAlive = (worker: WorkerRow, nowMs: number): boolean =>
  worker.host === readHost()
    ? !hasEnded(worker.pid, worker.process_start)
    : Date.parse(worker.seen) > nowMs - SESSION_LEASE_MS

const workerBeat: Command = {
  name: "worker-beat",
  operands: "<json>",
  summary: "Say that a worker lives, renew the claims of its runs, and learn what is wanted of it; Baton's own",
  arguments: { least: 1, most: 1 },
  run: ({ args: [json = ""] }, context) => {
    const given = parseJSON(json)
    if (!isRecord(given) || textAt(given, "id") === "") throw refuse("expected a worker with an id")
    const held = Array.isArray(given.runs) ? given.runs.filter(isRecord) : []
    return [
      goJson(
        context.write((store) => {
          store.run(WORKERS)
          ensureRunTables(store)
          const nowMs = context.nowMs()
          const id = textAt(given, "id")
          const before = readWorkers(store).find((each) => each.id === id)
          if (given.state === "ended") store.run("DELETE FROM baton_workers WHERE id = ?", id)
          else
            store.insert(
              "baton_workers",
              {
                id,
                host: readHost(),
                pid: countAt(given, "pid"),
                process_start: startOfProcess(countAt(given, "pid")),
                project: textAt(given, "project"),
                directory: textAt(given, "directory"),
                slots: countAt(given, "slots"),
                state: textAt(given, "state"),
                wanted: before?.wanted ?? "active",
                note: textAt(given, "note"),
                started: before?.started ?? iso(nowMs),
                seen: iso(nowMs),
              },
              "OR REPLACE",
            )
          const runs = held.map((each) => {
            const [task, n] = [textAt(each, "task"), countAt(each, "n")]
            const found = reportRun(store, task, n)
            const item = findItem(store, task)
            const claim = item && readCurrentClaim(store, item, nowMs)
            const run = findRun(store, task, n)
            const isHeld = claim !== undefined && run !== undefined && isHolder(context, run)
            if (isHeld && found.ended === "") putClaim(store, { ...claim, lease_until: iso(nowMs + SESSION_LEASE_MS) })
            return { ...found, held: isHeld }
          })
          return { wanted: before?.wanted ?? "active", runs }
        }),
      ),
    ]
  },
}

const WANTED = ["active", "paused", "draining", "stopped"]

const workerWant: Command = {
  name: "worker-want",
  operands: "<active|paused|draining|stopped> [<id>]",
  summary: "Tell workers what is wanted of them; Baton's own",
  arguments: { least: 1, most: 2 },
  flags: [JSON_FLAG],
  run: ({ args: [wanted = "", id], flags }, context) => {
    if (!WANTED.includes(wanted)) throw refuse(`expected one of ${WANTED.join(", ")}, received "${wanted}"`)
    const project = flags.text("project")
    const changed = context.write((store) => {
      store.run(WORKERS)
      const alive = readWorkers(store).filter(
        (worker) =>
          isAlive(worker, context.nowMs()) &&
          (project === "" || worker.project === project) &&
          (id === undefined || worker.id === id),
      )
      for (const worker of alive) store.update("baton_workers", { id: worker.id }, { wanted })
      return alive
    })
    return flags.has("json") ? [goJson(changed)] : changed.map((worker) => worker.id)
  },
}

const workers: Command = {
  name: "workers",
  summary: "List the workers (baton work) that run, and those that ended without a word",
  flags: [JSON_FLAG],
  run: ({ flags }, context) => {
    const project = flags.text("project")
    const found = context.write((store) => {
      store.run(WORKERS)
      ensureRunTables(store)
      return readWorkers(store)
        .filter((worker) => project === "" || worker.project === project)
        .map((worker) => ({ ...worker, alive: isAlive(worker, context.nowMs()), own: worker.host === readHost() }))
    })
    if (flags.has("json")) return [goJson(found)]
    if (found.length === 0) return ["No workers"]
    return found.map(({ id, project: name, state, alive, directory }) =>
      [padRight(id, 24), padRight(alive ? state : "gone", 9), name, directory].join(" "),
    )
  },
}

export const workerCommands: readonly Command[] = [workerBeat, workerWant, workers]
