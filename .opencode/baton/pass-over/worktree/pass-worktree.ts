import { realpath } from "node:fs/promises"
import { relative, sep } from "node:path"
import { describeError, type Log } from "../../host/log.ts"
import type { RunProcess } from "../../host/process.ts"
import type { StateFolder } from "../../host/state.ts"
import { createPassLocks } from "../sandbox/locks.ts"
import { type Beginning, beginPass, findSource } from "./begin-pass.ts"
import { createCopiesInMaking } from "./copies-in-making.ts"
import { createGit } from "./git.ts"
import { PASSES_FOLDER, type PassFolder, passFolder } from "./pass-folder.ts"
import { busy, failed, unknownPass, wrongState } from "./refusal.ts"
import { removeAside, removeFiles } from "./remove-copy.ts"
import { listPending, restoreApplying, restoreWorking } from "./restore-pass.ts"
import { applyHeld, describeChanges, holdChanges, lookAtCopy, rejectHeld, removeStoredCopy } from "./settle-pass.ts"
import { countHeld, readStage, type Stage } from "./stage.ts"
import type { BeginOptions, Begun, Changes, PassWorktree, Refusal, Restored } from "./worktree.ts"

type PassWorktreeDeps = {
  readonly state: StateFolder
  readonly directory: string
  readonly run: RunProcess
  readonly log: Pick<Log, "debug" | "warn">
  readonly now: () => Date
  /** Time that a call waits for another one that writes or stores files (default 10 s). */
  readonly lockWaitMs?: number
}

const LOCK_WAIT_MS = 10_000
const NO_PATHS: ReadonlySet<string> = new Set()
const MADE = Promise.resolve(undefined)
const NO_CHANGES: Changes = { kind: "changes", modifications: [], leftOut: [] }

const stillWorks = () => wrongState("the child still works", "Wait until the pass has returned.")
const interrupted = () => wrongState("an apply was interrupted", "Run `baton passes restore` with the pass's id first.")

/** Place of an originator: OpenCode's directory, or the copy of a pass that still runs. */
type Origin = { readonly directory: string; readonly copy?: string }

export const createPassWorktree = (deps: PassWorktreeDeps): PassWorktree => {
  const { state, directory, run, log, now, lockWaitMs = LOCK_WAIT_MS } = deps
  const git = createGit(run)
  const locks = createPassLocks({ waitMs: lockWaitMs })
  const copies = createCopiesInMaking()
  const applyLock = state.path(PASSES_FOLDER, "apply.lock")
  /** Passes without the right to change files: they have nothing to store. */
  const readOnly = new Map<string, Origin>()

  /** Turns errors into refusals and logs them. */
  const guarded = async <T>(what: string, passID: string, work: () => Promise<T | Refusal>): Promise<T | Refusal> => {
    try {
      return await work()
    } catch (error) {
      log.warn(`${what} the files of a pass failed`, { passID, error: describeError(error) })
      return failed(`${what} the files of pass ${passID} failed: ${describeError(error)}`)
    }
  }

  type Work<T> = (folder: PassFolder, stage: Exclude<Stage, { kind: "none" }>) => Promise<T | Refusal>

  const withPass = <T>(what: string, passID: string, work: Work<T>): Promise<T | Refusal> =>
    guarded(what, passID, async () => {
      const folder = passFolder(state, passID)
      if (folder === undefined || (await readStage(folder)).kind === "none") return unknownPass(passID)
      const done = await locks.during(passID, folder.lock, async () => {
        // The previous holder of the lock may have changed it.
        const stage = await readStage(folder)
        return stage.kind === "none" ? unknownPass(passID) : await work(folder, stage)
      })
      return done === "busy" ? busy(`another process works on the pass ${passID}`) : done
    })

  const originOf = async (parent: string | undefined): Promise<Origin | Refusal> => {
    if (parent === undefined) return { directory }
    const shared = readOnly.get(parent)
    if (shared !== undefined) return shared
    const above = passFolder(state, parent)
    const stage = above && (await readStage(above))
    if (above === undefined || stage?.kind !== "working") return unknownPass(parent)
    return { directory: stage.record.directory, copy: above.copy }
  }

  const makeCopy = async (passID: string, make: Beginning["make"], signal: AbortSignal) => {
    const made = await guarded("copying", passID, async () => {
      try {
        await make(signal)
      } catch (error) {
        if (!signal.aborted) throw error
      }
    })
    if (made !== undefined) await locks.letGo(passID)
    return made ?? undefined
  }

  const begin = async (passID: string, { canModify, parent }: BeginOptions): Promise<Begun | Refusal> => {
    const folder = passFolder(state, passID)
    const origin = await originOf(parent)
    if (folder === undefined) return unknownPass(passID)
    if ("kind" in origin) return origin
    if (!canModify) {
      readOnly.set(passID, origin)
      return { kind: "begun", directory: origin.directory, copy: origin.copy, leftOut: [], made: MADE }
    }
    const source = await findSource(git, origin.directory, origin.copy)
    if ("kind" in source) return source
    if ((await readStage(folder)).kind !== "none") {
      return wrongState(`files of a pass ${passID} are kept already`, "Use another id.")
    }
    await state.prepare(PASSES_FOLDER, passID, "files")
    if (!(await locks.keep(passID, folder.lock))) return busy(`another process works on the pass ${passID}`)
    try {
      // A parent's copy has no state of its own; the same path is left out of it.
      const top = origin.copy === undefined ? source.top : undefined
      const own = top === undefined ? ".opencode/state" : relative(top, await realpath(state.root))
      const begun = await beginPass({ git, source, folder, ownFolder: own.split(sep).join("/"), now })
      log.debug("the files of a pass are begun", { passID, outcome: begun.kind })
      if (begun.kind === "refused") {
        await locks.letGo(passID)
        return begun
      }
      const { make, ...known } = begun
      return { ...known, kind: "begun", made: copies.begin(passID, (signal) => makeCopy(passID, make, signal)) }
    } catch (error) {
      await locks.letGo(passID)
      throw error
    }
  }

  const apply: PassWorktree["apply"] = (passID, options = {}) =>
    withPass("applying", passID, async (folder, stage) => {
      if (stage.kind === "applying") return interrupted()
      if (stage.kind === "working") return stillWorks()
      const done = await locks.during("apply", applyLock, () => applyHeld({ git, folder }, stage, options))
      return done === "busy" ? busy("another pass is being applied") : done
    })

  /** No tool worked in it, so nothing can have changed. */
  const dropUntouched = async (passID: string): Promise<Changes | Refusal> => {
    const folder = passFolder(state, passID)
    const removed = await guarded("removing", passID, async () => folder && (await removeFiles(folder)))
    await locks.letGo(passID)
    return removed ?? NO_CHANGES
  }

  const withhold: PassWorktree["withhold"] = async (passID, toolPaths = NO_PATHS) => {
    if (readOnly.delete(passID)) return NO_CHANGES
    if ((await copies.leave(passID)) === "untouched") return await dropUntouched(passID)
    const held = await withPass<Changes>("storing", passID, async (folder, stage) => {
      const isDone = stage.kind !== "working"
      const changes = isDone ? stage.changes : await holdChanges({ git, folder }, stage.record, toolPaths)
      return "kind" in changes ? changes : await describeChanges(folder, changes)
    })
    await locks.letGo(passID)
    return held
  }

  return {
    begin: (passID, options) => guarded("beginning", passID, () => begin(passID, options)),
    requestPrepared: copies.requestPrepared,
    enter: copies.enter,
    complete: copies.complete,
    changes: async (passID, toolPaths = NO_PATHS) => {
      if (readOnly.has(passID)) return NO_CHANGES
      await copies.complete(passID)
      return await withPass<Changes>("reading", passID, async (folder, stage) => {
        const isDone = stage.kind !== "working"
        const changes = isDone ? stage.changes : await lookAtCopy({ git, folder }, stage.record, toolPaths)
        return "kind" in changes ? changes : await describeChanges(folder, changes)
      })
    },
    withhold,
    keep: async (passID, toolPaths) => {
      if (readOnly.has(passID)) return { kind: "applied", complete: true, files: [], held: 0 }
      const held = await withhold(passID, toolPaths)
      return held.kind === "refused" ? held : await apply(passID, { merge: true, allOrNothing: false })
    },
    apply,
    reject: (passID, paths) =>
      withPass("rejecting", passID, async (folder, stage) => {
        if (stage.kind === "applying") return interrupted()
        return stage.kind === "working" ? stillWorks() : await rejectHeld(folder, stage.changes, paths)
      }),
    copyOf: (passID) => state.path(PASSES_FOLDER, passID, "copy"),
    pending: () => listPending(state),
    restore: (passID) =>
      withPass<Restored>("restoring", passID, async (folder, stage) => {
        if (stage.kind === "applying") return await restoreApplying(folder, stage)
        if (stage.kind === "working") return await restoreWorking({ git, folder }, stage.record)
        await removeStoredCopy(folder, stage.changes)
        return { kind: "restored", did: [], leftAlone: [], held: countHeld(stage.changes) }
      }),
    sweep: async () => {
      try {
        await removeAside(state)
      } catch (error) {
        log.warn("copies of earlier passes could not be deleted", { error: describeError(error) })
      }
    },
  }
}
