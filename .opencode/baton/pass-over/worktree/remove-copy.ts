/** Removes the copy of a pass: moved away at once, deleted in the background. */
import { mkdirSync, mkdtempSync, renameSync } from "node:fs"
import { rm } from "node:fs/promises"
import { basename, join } from "node:path"
import type { StateFolder } from "../../host/state.ts"
import { statIfThere } from "./disk.ts"
import { asideFolder, type PassFolder } from "./pass-folder.ts"

const remove = (path: string): Promise<void> => rm(path, { recursive: true, force: true })

const moveAside = (aside: string, paths: readonly string[]): string => {
  mkdirSync(aside, { recursive: true })
  const place = mkdtempSync(join(aside, "copy-"))
  for (const path of paths) renameSync(path, join(place, basename(path)))
  return place
}

/**
 * Removes the copy and its comparison data; the changes and their contents stay. The copy is moved away when this resolves.
 * Deleting takes time per file and is not waited for; the next start of OpenCode deletes the rest.
 *
 * @throws the file system's own error, when it can be neither moved nor deleted
 */
export const removeCopy = async ({ aside, manifest, copy, base, lister, index }: PassFolder): Promise<void> => {
  // The manifest first: if the process ends in between, a copy without one counts as unused. In the other order a missing copy
  // would look as if all its files had been deleted.
  const parts = [manifest, copy, base, lister, index]
  try {
    const place = moveAside(
      aside,
      parts.filter((path) => statIfThere(path) !== undefined),
    )
    void remove(place).catch(() => {})
  } catch {
    // The target exists, or is on another file system.
    for (const path of parts) await remove(path)
  }
}

/** Removes all files of a pass. @throws as `removeCopy` does */
export const removeFiles = async (folder: PassFolder): Promise<void> => {
  await removeCopy(folder)
  await remove(folder.root)
}

/** Deletes copies that ended processes moved away. @throws the file system's own error */
export const removeAside = (state: Pick<StateFolder, "path">): Promise<void> => remove(asideFolder(state))
