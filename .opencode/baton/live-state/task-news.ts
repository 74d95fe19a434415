import { dirname } from "node:path"
import { SILENT } from "../host/log.ts"
import { createProcessRunner } from "../host/process.ts"
import { createStateFolder } from "../host/state.ts"
import { createLedger } from "../ledger/client.ts"
import { splitHandoff } from "../ledger/description.ts"
import type { LedgerTask } from "../ledger/ledger.ts"
import type { TaskNews } from "./agent-view.ts"
import { renderHandoffHeading } from "./handoff-line.ts"

const toNews = ({ title, status, logs, description }: LedgerTask): TaskNews => {
  const { handoff } = splitHandoff(description)
  const heading = handoff === undefined ? undefined : renderHandoffHeading(handoff)
  return { title, status, log: logs, ...(heading === undefined ? {} : { handoff: heading }) }
}

export type TaskReading =
  | { readonly kind: "read"; readonly news: TaskNews | undefined }
  /** The ledger could not be asked now; what was known still holds. */
  | { readonly kind: "failed" }

/** What the ledger of a project says of a task; no news of one that it does not have. */
export const createTaskReader = (root: string): ((taskID: string) => Promise<TaskReading>) => {
  const ledger = createLedger({
    run: createProcessRunner({ shell: undefined }),
    directory: root,
    // An observer has no log of its own: what it cannot read it shows as not there.
    log: SILENT,
    state: createStateFolder(root),
    bundleRoot: dirname(import.meta.dirname),
  })
  return async (taskID) => {
    const read = await ledger.readTask(taskID)
    if (read.kind === "unavailable") return { kind: "failed" }
    return { kind: "read", news: read.kind === "found" ? toNews(read.task) : undefined }
  }
}
