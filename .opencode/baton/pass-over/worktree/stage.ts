import { stat } from "node:fs/promises"
import { isNotFound } from "../../host/log.ts"
import { replaceFile } from "../../host/state.ts"
import type { PassFolder } from "./pass-folder.ts"
import {
  type CopyRecord,
  changesSchema,
  type HeldChanges,
  type Journal,
  journalSchema,
  type ManifestEntry,
  manifestSchema,
  readStored,
  recordSchema,
} from "./stored.ts"

/** The stage of a pass's files, read from their folder; it is stored nowhere else, so that nothing can contradict it. */
export type Stage =
  | { readonly kind: "none" }
  /** The copy is made; without a manifest, making it was interrupted or is in progress. */
  | { readonly kind: "working"; readonly record: CopyRecord }
  | { readonly kind: "held"; readonly record: CopyRecord; readonly changes: HeldChanges }
  | { readonly kind: "applying"; readonly record: CopyRecord; readonly changes: HeldChanges; readonly journal: Journal }

/** @throws zod's error, or SyntaxError, for a damaged file */
export const readStage = async (folder: PassFolder): Promise<Stage> => {
  const record = await readStored(folder.record, recordSchema)
  if (record === undefined) return { kind: "none" }
  const changes = await readStored(folder.changes, changesSchema)
  if (changes === undefined) return { kind: "working", record }
  const journal = await readStored(folder.journal, journalSchema)
  return journal === undefined ? { kind: "held", record, changes } : { kind: "applying", record, changes, journal }
}

export const readManifest = (folder: PassFolder): Promise<ManifestEntry[] | undefined> =>
  readStored(folder.manifest, manifestSchema)

export const saveChanges = (folder: PassFolder, changes: HeldChanges): Promise<void> =>
  replaceFile(folder.changes, JSON.stringify(changes))

export const countHeld = ({ files }: HeldChanges): number => files.filter(({ fate }) => fate === "held").length

/** Returns the changes with a new fate for some files; a renamed file is matched by either name. */
export const withFate = (changes: HeldChanges, paths: ReadonlySet<string>, fate: "held" | "applied" | "rejected") => ({
  ...changes,
  files: changes.files.map((file) =>
    paths.has(file.path) || (file.previous_path !== null && paths.has(file.previous_path)) ? { ...file, fate } : file,
  ),
})

export const isFolder = async (path: string): Promise<boolean> => {
  try {
    return (await stat(path)).isDirectory()
  } catch (error) {
    if (isNotFound(error)) return false
    throw error
  }
}
