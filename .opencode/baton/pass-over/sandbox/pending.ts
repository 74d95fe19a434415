/** Passes with unsettled files, those of an earlier version among them. */
import { readdir } from "node:fs/promises"
import { createFileLock } from "../../host/file-lock.ts"
import { describeError, isNotFound } from "../../host/log.ts"
import type { StateFolder } from "../../host/state.ts"
import { type Refusal, refusals } from "./repository.ts"
import { statIfThere } from "./snapshot.ts"
import { countHeld, PASSES_FOLDER, type PassFolder, passFolder, readStage } from "./stored.ts"
import type { Changes, PendingPass } from "./types.ts"

const EARLIER = "the pass was made by an earlier version of Baton, whose stored files this one cannot apply"

export const refuseEarlier = (folder: PassFolder): Refusal =>
  refusals.wrongState(
    EARLIER,
    `Read the changes with pass_over_status; their contents are in ${folder.root}. pass_over_reject gives them up.`,
  )

/** For the result of a pass that was at work when its version of Baton ended. */
export const describeEarlier = ({ root, copy }: PassFolder): Changes => ({
  kind: "changes",
  modifications: [],
  leftOut: [{ path: ".", reason: `${EARLIER}; they are in ${root} and ${copy}` }],
})

/** Lists passes with unsettled files; unreadable ones first. */
export const listPending = async (state: Pick<StateFolder, "path">): Promise<PendingPass[]> => {
  const pending: PendingPass[] = []
  const describe = async (passID: string, folder: PassFolder): Promise<PendingPass | undefined> => {
    const stage = await readStage(folder)
    const copy = statIfThere(folder.copy)?.isDirectory() ? folder.copy : undefined
    const isOwned = await createFileLock({ path: folder.lock }).isTaken()
    if (stage.kind === "none" || (stage.kind === "held" && countHeld(stage.changes) === 0)) return undefined
    if (stage.kind !== "earlier") return { passID, state: stage.kind, since: stage.record.began_at, isOwned, copy }
    const { began_at: since, isWorking, held } = stage.pass
    if (isWorking) return { passID, state: "damaged", since, isOwned, copy, reason: EARLIER }
    return held.length === 0 ? undefined : { passID, state: "held", since, isOwned, copy }
  }
  const entries = await readdir(state.path(PASSES_FOLDER), { withFileTypes: true }).catch((error: unknown) => {
    if (isNotFound(error)) return []
    throw error
  })
  for (const { name: passID } of entries.filter((entry) => entry.isDirectory())) {
    const folder = passFolder(state, passID)
    if (folder === undefined) continue
    try {
      const found = await describe(passID, folder)
      if (found) pending.push(found)
    } catch (error) {
      const reason = describeError(error)
      pending.push({ passID, state: "damaged", since: "", isOwned: false, copy: undefined, reason })
    }
  }
  return pending.sort((one, other) => (one.since < other.since ? -1 : 1))
}
