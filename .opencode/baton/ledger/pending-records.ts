import { existsSync, readdirSync } from "node:fs"
import { join } from "node:path"

export const OUTBOX_FOLDER = "outbox"
export const RECORD_ENDING = ".json"

/** Tells whether there may be records of an earlier process to deliver. */
export const hasPendingRecords = (projectRoot: string): boolean => {
  const folder = join(projectRoot, ".opencode", "state", OUTBOX_FOLDER)
  try {
    return existsSync(folder) && readdirSync(folder).some((name) => name.endsWith(RECORD_ENDING))
  } catch {
    // The outbox reports why its folder cannot be read.
    return true
  }
}
