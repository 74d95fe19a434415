import { createHash } from "node:crypto"
import { existsSync, mkdirSync, realpathSync, renameSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { accountFolder } from "./project.ts"
import { isRecord } from "./schema.ts"
import { PRIVATE_FILE, PRIVATE_FOLDER, removeQuietly, temporaryName } from "./state-mark.ts"
import { readOwnTextSync } from "./untrusted.ts"

/** Word that workers have come to their end, from when to when, until a person has read the report. */
export type WorkNote = {
  /** Begin of the work, ISO 8601. */
  readonly since: string
  /** prog's name of the project. */
  readonly project: string
}

/** Outside of the project, whose state may come from elsewhere. */
const noteFile = (project: string): string => {
  const hash = createHash("sha256").update(realpathSync(project)).digest("hex").slice(0, 16)
  return join(accountFolder(), "reports", `${hash}.json`)
}

/** Leaves the note; an earlier one that was not read keeps its begin. @throws the file system's own error */
export const leaveWorkNote = (project: string, note: WorkNote): void => {
  const path = noteFile(project)
  mkdirSync(dirname(path), { recursive: true, mode: PRIVATE_FOLDER })
  const temporary = temporaryName(path)
  writeFileSync(temporary, JSON.stringify({ ...note, since: readWorkNote(project)?.since ?? note.since }), {
    mode: PRIVATE_FILE,
  })
  renameSync(temporary, path)
}

/** Reads the note; undefined where there is none that can be read. */
export const readWorkNote = (project: string): WorkNote | undefined => {
  try {
    const path = noteFile(project)
    if (!existsSync(path)) return undefined
    const note: unknown = JSON.parse(readOwnTextSync(path))
    return isRecord(note) && typeof note.since === "string" && typeof note.project === "string"
      ? { since: note.since, project: note.project }
      : undefined
  } catch {
    // It is only a hint: the report itself is in the ledger.
    return undefined
  }
}

/** Takes the note away, once the report was read. */
export const removeWorkNote = (project: string): void => removeQuietly(noteFile(project))
