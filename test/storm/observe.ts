import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { SECRET_TEXT } from "../support/faults/fault.ts"
import { DAMAGES, recordsIn, stateFolder } from "../support/faults/fault-stored-table.ts"
import { listTree } from "../support/files/folder-tree.ts"
import { TASK, type TaskProject } from "../support/opencode/task-project.ts"
import type { Stage } from "./stage.ts"
import type { Seen } from "./storm-script.ts"

/** A line that the task's log must hold; it may be missing if it was being written when OpenCode was killed. */
export type OwedLog = { what: string; begins: string; holds: string; isCertain: boolean }

export const isOwedLine = ({ begins, holds }: OwedLog, line: string): boolean =>
  line.startsWith(begins) && line.includes(holds)

/** Log lines that Baton must write for the observed actions of its agents; `wasKilled`: OpenCode did not end by itself. */
export const owedLogsOf = (seen: Seen, wasKilled: boolean): OwedLog[] => {
  const owe = (what: string, begins: string, holds: string, isCertain = true) => ({ what, begins, holds, isCertain })
  return [
    ...seen.summaries.map((summary) =>
      owe(`the compaction '${summary}'`, "Compaction ", summary, !wasKilled || seen.followed.has(summary)),
    ),
    ...[...seen.results].map((id) => owe(`the result of ${id}`, "Pass ", id)),
    ...[...seen.handoffs].map((id) => owe(`the handoff to ${id}`, `Handoff to ${id}`, "")),
  ]
}

const filesBelow = (folder: string, ending: string): string[] =>
  existsSync(folder) ? listTree(folder).flatMap((path) => (path.endsWith(ending) ? [join(folder, path)] : [])) : []

/** A pass as the project's files have it; without a state there is no record of it. */
export type SeenPass = { id: string; state: string | undefined; hasCopy: boolean; isAudited: boolean }

export const readPasses = (task: TaskProject, ids: Iterable<string>): SeenPass[] => {
  const logs = filesBelow(join(task.project.directory, ".opencode", "pass-over-logs"), ".jsonl")
  const audit = logs.map((path) => readFileSync(path, "utf8")).join("")
  return [...ids].map((id) => {
    const folder = join(stateFolder(task, "pass-over"), id)
    const record = join(folder, "pass.json")
    const state = existsSync(record) ? JSON.parse(readFileSync(record, "utf8")).state.state : undefined
    return { id, state, hasCopy: existsSync(join(folder, "copy")), isAudited: audit.includes(id) }
  })
}

export const readFiles = (task: TaskProject, files: Seen["files"]) =>
  [...files].map(([path, { certain, possible }]) => {
    const place = join(task.project.directory, path)
    const found = existsSync(place) ? readFileSync(place, "utf8") : undefined
    return { path, found, allowed: possible === undefined ? [certain] : [certain, possible] }
  })

/** Files of the bundle's state, without parked records and copies of the project. */
const stateFiles = (task: TaskProject): string[] =>
  filesBelow(stateFolder(task, ""), ".json").filter((path) => !/\/outbox\/parked\/|\/copy\//.test(path))

const isHalf = (path: string): boolean => {
  const content = readFileSync(path)
  // Damage by the storm itself, in a session without later turns.
  if (DAMAGES.some((damage) => content.equals(Buffer.from(damage.content)))) return false
  try {
    JSON.parse(content.toString("utf8"))
    return false
  } catch {
    return true
  }
}

export const readHalfFiles = (task: TaskProject): string[] => stateFiles(task).filter(isHalf)

/** Reads ledger and state after the clean run. */
export const readRecords = async ({ task, correction }: Stage) => {
  const { logs, description } = await task.ledger.show(task.taskID)
  const found = JSON.parse(await task.ledger.prog("context", "-p", "project", "--summary", "--json"))
  const learnings: string[] = found.map(({ summary }: { summary: string }) => summary)
  const isTold = task.model.requests.some(({ conversation }) => conversation.includes(SECRET_TEXT))
  const holders = stateFiles(task).filter((path) => readFileSync(path, "utf8").includes(SECRET_TEXT))
  if (JSON.stringify([logs, description, learnings]).includes(SECRET_TEXT)) holders.push("the ledger")
  return {
    ledger: { logs: logs.map(({ message }) => message), description, learnings },
    claims: await task.ledger.prog("claims"),
    specification: TASK.specification,
    parked: recordsIn(task, "outbox/parked").length,
    leak: isTold && !correction.isSecret ? ["what only the baits hold is in a request to the model"] : [],
    secret: holders.map((where) => `what is not to be learned is in ${where}`),
  }
}
