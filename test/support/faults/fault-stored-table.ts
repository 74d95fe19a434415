import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { withoutSession } from "../ledger/test-ledger.ts"
import type { TaskProject } from "../opencode/task-project.ts"
import type { Fault } from "./fault.ts"

/** A folder of Baton's state in a project. */
export const stateFolder = ({ project }: Pick<TaskProject, "project">, name: string): string =>
  join(project.directory, ".opencode", "state", name)

/** Names of the records in the outbox, pending or parked. */
export const recordsIn = (task: Pick<TaskProject, "project">, name: "outbox" | "outbox/parked"): string[] => {
  const folder = stateFolder(task, name)
  return existsSync(folder) ? readdirSync(folder).filter((file) => file.endsWith(".json")) : []
}

/** Each with the last line of Baton's log on it. */
export const describeRecords = ({ project }: TaskProject, names: readonly string[]): string[] =>
  names.map((name) => `${name} (${project.batonLog().findLast((line) => line.includes(name)) ?? "not in the log"})`)

/** Log entries of compactions, by place. */
export type Records = { readonly ledger: string[]; readonly outbox: string[] }

export const readRecords = async (task: TaskProject): Promise<Records> => {
  const waiting: { message?: string }[] = recordsIn(task, "outbox")
    .sort()
    .map((name) => JSON.parse(readFileSync(join(stateFolder(task, "outbox"), name), "utf8")).entry)
  return {
    ledger: await task.ledger.messages(task.taskID),
    outbox: waiting.flatMap(({ message }) => (message === undefined ? [] : [withoutSession(message)])),
  }
}

/** Contents that replace a state file, and the log line that follows. */
export const DAMAGES = [
  { folder: "tasks", name: "cut off in the middle", content: '{"version":1,"sessionID":"se', reason: "JSON" },
  { folder: "compactions", name: "of a version to come", content: '{"version":2,"count":7}', reason: "version" },
  { folder: "tasks", name: "empty", content: "", reason: "JSON" },
  { folder: "compactions", name: "binary", content: Buffer.from([0, 0xff, 0xfe, 0x80, 0]), reason: "JSON" },
] as const

/** Damages every file of the folder that exists. */
export const damageState = (
  task: Pick<TaskProject, "project">,
  { folder, content }: (typeof DAMAGES)[number],
): void => {
  const path = stateFolder(task, folder)
  if (!existsSync(path)) return
  for (const name of readdirSync(path)) writeFileSync(join(path, name), content)
}

export const STORED_FAULTS: readonly Fault<TaskProject>[] = DAMAGES.map((damage) => ({
  name: `stored ${damage.folder} ${damage.name}`,
  slots: [`stored ${damage.folder}`],
  when: "resume",
  needs: ["resume"],
  arrange: (task) => damageState(task, damage),
}))
