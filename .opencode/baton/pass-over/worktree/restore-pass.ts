import { readdir } from "node:fs/promises"
import { createFileLock } from "../../host/file-lock.ts"
import { describeError, isNotFound } from "../../host/log.ts"
import type { StateFolder } from "../../host/state.ts"
import { PASSES_FOLDER, type PassFolder, passFolder } from "./pass-folder.ts"
import { removeFiles } from "./remove-copy.ts"
import { holdChanges, type SettleDeps } from "./settle-pass.ts"
import { countHeld, isFolder, readManifest, readStage, type Stage, saveChanges, withFate } from "./stage.ts"
import type { CopyRecord } from "./stored.ts"
import { removeUndo, undoJournal } from "./undo.ts"
import type { PendingPass, Refusal, Restored } from "./worktree.ts"

const listPasses = async (state: Pick<StateFolder, "path">): Promise<string[]> => {
  try {
    const entries = await readdir(state.path(PASSES_FOLDER), { withFileTypes: true })
    return entries.filter((entry) => entry.isDirectory()).map(({ name }) => name)
  } catch (error) {
    if (isNotFound(error)) return []
    throw error
  }
}

const pendingState = (stage: Stage): PendingPass["state"] | undefined => {
  if (stage.kind === "none") return undefined
  if (stage.kind !== "held") return stage.kind
  return countHeld(stage.changes) > 0 ? "held" : undefined
}

const describePending = async (passID: string, folder: PassFolder): Promise<PendingPass | undefined> => {
  const stage = await readStage(folder)
  const state = pendingState(stage)
  if (state === undefined || stage.kind === "none") return undefined
  const isOwned = await createFileLock({ path: folder.lock }).isTaken()
  const copy = (await isFolder(folder.copy)) ? folder.copy : undefined
  return { passID, state, since: stage.record.began_at, isOwned, copy }
}

/** Lists passes with unsettled files; unreadable ones first. */
export const listPending = async (state: Pick<StateFolder, "path">): Promise<PendingPass[]> => {
  const pending: PendingPass[] = []
  for (const passID of await listPasses(state)) {
    const folder = passFolder(state, passID)
    if (folder === undefined) continue
    try {
      const found = await describePending(passID, folder)
      if (found) pending.push(found)
    } catch (error) {
      pending.push({
        passID,
        state: "damaged",
        since: "",
        isOwned: false,
        copy: undefined,
        reason: describeError(error),
      })
    }
  }
  return pending.sort((one, other) => (one.since < other.since ? -1 : 1))
}

/**
 * Undoes an interrupted `apply`: the worktree is as before, and the files are held again.
 *
 * @throws the file system's own error; the journal stays
 */
export const restoreApplying = async (
  folder: PassFolder,
  { record, changes, journal }: Extract<Stage, { kind: "applying" }>,
): Promise<Restored> => {
  const leftAlone = await undoJournal(record.target, folder, journal)
  const written = new Set(journal.entries.map(({ path }) => path))
  const again = withFate(changes, written, "held")
  await saveChanges(folder, again)
  await removeUndo(folder)
  const did = [`took back ${journal.entries.length} writes of an apply that was interrupted`]
  return { kind: "restored", did, leftAlone, held: countHeld(again) }
}

/** Stores the changes in the copy of a child whose process ended. */
export const restoreWorking = async (deps: SettleDeps, record: CopyRecord): Promise<Restored | Refusal> => {
  if ((await readManifest(deps.folder)) === undefined) {
    // No tool of the child was let in, so the copy holds no work.
    await removeFiles(deps.folder)
    return { kind: "restored", did: ["removed a copy that was never finished"], leftAlone: [], held: 0 }
  }
  const changes = await holdChanges(deps, record, new Set())
  if ("kind" in changes) return changes
  const did = [`stored what a child changed whose process is gone: ${changes.files.length} files`]
  return { kind: "restored", did, leftAlone: changes.left_out, held: countHeld(changes) }
}
