/** How the copy of a pass goes: out of its place at once, off the disk behind whoever waits for the result. */
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
 * The copy and what was kept to compare it with; the changes and their contents stay. It is gone from its place when this ends.
 * Deleting it takes as long as it has files and is not waited for; the next start of OpenCode deletes what is left of it then.
 *
 * @throws the file system's own error, when it can be neither moved nor deleted
 */
export const removeCopy = async ({ aside, manifest, copy, base, lister, index }: PassFolder): Promise<void> => {
  // The manifest first: where the process ends in between, a copy that has none is one that nobody worked in. The other way
  // round a copy that is gone would look like one whose files were all deleted.
  const parts = [manifest, copy, base, lister, index]
  try {
    const place = moveAside(
      aside,
      parts.filter((path) => statIfThere(path) !== undefined),
    )
    void remove(place).catch(() => {})
  } catch {
    // Something is in the way, or it is another file system.
    for (const path of parts) await remove(path)
  }
}

/** Nothing of a pass's files stays. @throws as `removeCopy` does */
export const removeFiles = async (folder: PassFolder): Promise<void> => {
  await removeCopy(folder)
  await remove(folder.root)
}

/** Deletes what processes that ended left aside. @throws the file system's own error */
export const removeAside = (state: Pick<StateFolder, "path">): Promise<void> => remove(asideFolder(state))
