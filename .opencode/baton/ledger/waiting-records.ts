import { existsSync, readdirSync } from "node:fs"
import { join } from "node:path"

/** Whether an earlier process left records that have still to be delivered. @throws when the folder cannot be read */
export const hasWaitingRecords = (projectRoot: string): boolean => {
  const folder = join(projectRoot, ".opencode", "state", "outbox")
  return existsSync(folder) && readdirSync(folder).some((name) => name.endsWith(".json"))
}
