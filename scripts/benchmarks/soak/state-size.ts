import { readdirSync, statSync } from "node:fs"
import { join } from "node:path"
import type { TestProject } from "../../../test/support/test-project.ts"

export type StateSize = {
  /** `.opencode/state`, all of it. */
  stateBytes: number
  files: number
  journalBytes: number
  statefileBytes: number
  ledgerBytes: number
}

const filesBelow = (folder: string): { path: string; bytes: number }[] => {
  try {
    return readdirSync(folder, { recursive: true, withFileTypes: true }).flatMap((entry) => {
      const path = join(entry.parentPath, entry.name)
      return entry.isFile() ? [{ path, bytes: statSync(path).size }] : []
    })
  } catch (error) {
    // A file that was renamed away while we looked is counted next time.
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return []
    throw error
  }
}

const statefilesIn = (files: ReturnType<typeof filesBelow>) =>
  files.filter(({ path }) => path.includes("/.opencode/state/live/") && path.endsWith(".json"))

/** Whether the writer of this directory's live state has begun, which it does some seconds after the first session. */
export const hasStatefile = (directory: string): boolean =>
  statefilesIn(filesBelow(join(directory, ".opencode/state"))).length > 0

const sum = (files: readonly { bytes: number }[]): number => files.reduce((total, { bytes }) => total + bytes, 0)

/** What lies on the disk of these directories, in bytes, and the ledger they share. */
export const measureState = ({ home }: Pick<TestProject, "home">, directories: readonly string[]): StateSize => {
  const files = directories.flatMap((directory) => filesBelow(join(directory, ".opencode/state")))
  const below = (folder: string) => files.filter(({ path }) => path.includes(`/.opencode/state/${folder}/`))
  return {
    stateBytes: sum(files),
    files: files.length,
    journalBytes: sum(below("compactions")),
    statefileBytes: sum(statefilesIn(files)),
    ledgerBytes: sum(filesBelow(join(home, ".prog"))),
  }
}
