import { mkdir, rm, rmdir } from "node:fs/promises"
import { dirname, join } from "node:path"
import { errorCode, isNotFound } from "../../host/log.ts"
import { isSameSide, readSide, statIfThere } from "./disk.ts"
import type { PassFolder } from "./pass-folder.ts"
import type { Journal, JournalEntry, Side } from "./stored.ts"
import type { LeftOut } from "./worktree.ts"
import { writeSide } from "./write-step.ts"

const currentOf = async (path: string): Promise<Side | null | undefined> => {
  const found = statIfThere(path)
  return found === undefined ? null : await readSide(path, found)
}

const undoEntry = async (target: string, undo: string, entry: JournalEntry): Promise<LeftOut | undefined> => {
  const { path, before, after, temporary } = entry
  const place = join(target, path)
  await rm(join(target, temporary), { force: true })
  const current = await currentOf(place)
  if (current !== undefined && isSameSide(current, before)) return undefined
  if (current === undefined || !isSameSide(current, after)) {
    return { path, reason: "somebody changed it while the pass was being applied" }
  }
  if (before === null) {
    await rm(place, { force: true })
    return undefined
  }
  await mkdir(dirname(place), { recursive: true })
  await writeSide({
    path: place,
    side: before,
    held: undo,
    temporary: join(target, temporary),
    permissions: before.permissions,
  })
  return undefined
}

const removeMade = async (target: string, path: string, made: readonly string[]): Promise<void> => {
  for (const folder of made.filter((each) => path.startsWith(`${each}/`)).reverse()) {
    try {
      await rmdir(join(target, folder))
    } catch (error) {
      if (errorCode(error) !== "ENOTEMPTY" && !isNotFound(error)) throw error
    }
  }
}

/** Removes the undo data, the journal first: a journal left by a kill would refer to missing contents. */
export const removeUndo = async ({ journal, undo }: PassFolder): Promise<void> => {
  await rm(journal, { force: true })
  await rm(undo, { recursive: true, force: true })
}

/**
 * Undoes the writes of a journal, newest first. A file that has neither its previous nor the pass's content was changed by others
 * and is left alone.
 *
 * @returns the files left alone
 * @throws the file system's own error; the journal stays, so that it can be tried again
 */
export const undoJournal = async (target: string, folder: PassFolder, journal: Journal): Promise<LeftOut[]> => {
  const leftAlone: LeftOut[] = []
  // Writes are undone before removals: a file may be where a folder has to be restored.
  const newestFirst = [...journal.entries].reverse()
  for (const entry of newestFirst) {
    const left = await undoEntry(target, folder.undo, entry)
    if (left) leftAlone.push(left)
    else if (entry.before === null) await removeMade(target, entry.path, journal.made_folders)
  }
  return leftAlone
}
