import type { Ledger } from "../ledger/ledger.ts"

const READ_DEADLINE_MS = 1_500

/** What the ledger says of a task, for somebody who has never seen it; undefined when it cannot be read now. */
export const describeTask = async (ledger: Pick<Ledger, "readTask">, taskID: string): Promise<string | undefined> => {
  const read = await ledger.readTask(taskID, { deadlineMs: READ_DEADLINE_MS })
  if (read.kind !== "found") return undefined
  const { title, description, definitionOfDone } = read.task
  return [title, ...(definitionOfDone ? [`Definition of done: ${definitionOfDone}`] : []), description]
    .filter((text) => text !== "")
    .join("\n")
}
