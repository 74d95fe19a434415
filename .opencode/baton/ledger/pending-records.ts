import { existsSync, readdirSync } from "node:fs"
import { join } from "node:path"

/** Where the outbox lies in the state folder, and what its records' names end in. */
export const OUTBOX_FOLDER = "outbox"
export const RECORD_ENDING = ".json"

/** Whether an earlier process may have left records that have still to be delivered. */
export const hasPendingRecords = (projectRoot: string): boolean => {
  const folder = join(projectRoot, ".opencode", "state", OUTBOX_FOLDER)
  try {
    return existsSync(folder) && readdirSync(folder).some((name) => name.endsWith(RECORD_ENDING))
  } catch {
    // The outbox will say why it cannot read its folder.
    return true
  }
}
