import { readdirSync } from "node:fs"
import { cp } from "node:fs/promises"
import { join, relative } from "node:path"
import { lazy } from "../../host/async.ts"
import { acquireWithin, createFileLock } from "../../host/file-lock.ts"
import { describeError, type Log } from "../../host/log.ts"
import type { RunProcess } from "../../host/process.ts"
import type { StateFolder } from "../../host/state.ts"
import type { FileModification } from "../contract.ts"
import type { Passes } from "../store/passes.ts"
import type { PassOwners } from "../store/store.ts"
import { applyChanges, type FileResult } from "./apply.ts"
import { discard, fillSandbox, findSource, removeAll, removeFiles, scanSource } from "./create.ts"
import { type ApplyPlace, dropJournal, rollBack } from "./journal.ts"
import {
  createGit,
  createSnapshotRepository,
  findExcludesFile,
  type Refusal,
  RefusalError,
  refusals,
} from "./repository.ts"
import { collectChanges, type FreeSpace, freeSpaceOn, hasUncarried, type Skipped, statIfThere } from "./snapshot.ts"
import {
  type FilesState,
  findTarget,
  type PassFolder,
  passFolder,
  readFilesState,
  renderPatch,
  type StoredChanges,
  saveChanges,
  saveTarget,
  toModification,
} from "./stored.ts"

export type SandboxOptions = {
  readonly canModify: boolean
  /** The pass that the originator itself works on: the sandbox is made of the parent's, and `apply` writes there. */
  readonly parent: string | undefined
}

export type Sandbox = {
  readonly kind: "created"
  /** Place of the child's tools: in its sandbox, or OpenCode's directory for a pass without the right to change files. */
  readonly directory: string
  /** Absolute path of its top folder; for a pass without the right to change files its parent's, or undefined without one. */
  readonly sandbox: string | undefined
  /** Submodules, nested repositories, sockets and the like, which are not in the sandbox. */
  readonly skipped: readonly Skipped[]
  /** Resolves when the sandbox is there; with a refusal, and nothing left of it, when it cannot be made. Never rejects. */
  readonly ready: Promise<Refusal | undefined>
}

export type Changes = {
  readonly kind: "changes"
  readonly modifications: readonly FileModification[]
  /** Files of the child that no pass can carry. The sandbox stays if it has the only version of them. */
  readonly skipped: readonly Skipped[]
  /** Steps done about a process that had died, one sentence each, and the files that were left alone then. */
  readonly recovered: readonly string[]
  readonly leftAlone: readonly Skipped[]
}

type ApplyOptions = {
  /** With one conflict no file is applied. */
  readonly allOrNothing: boolean
  readonly by: "policy" | "originator"
}

type SandboxesDeps = {
  readonly state: StateFolder
  readonly directory: string
  readonly run: RunProcess
  /** A pass is this process's own while it has claimed it. */
  readonly owners: Pick<PassOwners, "during" | "isLost">
  readonly passes: Pick<Passes, "appliedPaths" | "recordApplied">
  readonly log: Pick<Log, "debug" | "warn">
  /** Bytes that may be written in a folder (default: of its disk, less a twentieth). */
  readonly freeSpace?: FreeSpace
  /** Time that an apply waits for another one (default 10 s). */
  readonly lockWaitMs?: number
}

const LOCK_WAIT_MS = 10_000
export const NO_CHANGES: Changes = { kind: "changes", modifications: [], skipped: [], recovered: [], leftAlone: [] }
const MADE = Promise.resolve(undefined)

/** For a sandbox that was deleted: nothing is left to store or to wait for. */
const SANDBOX_IS_GONE: Skipped = {
  path: ".",
  reason: "the sandbox in which the subagent worked was deleted, and what it changed there with it",
}

type KnownFilesState = Exclude<FilesState, { kind: "none" }>

/** A pass of this process whose child works. `isUsed`: a tool was let in. */
type Open = Omit<Sandbox, "ready"> & {
  readonly isOwn: boolean
  ready: Sandbox["ready"]
  isUsed: boolean
  isDropped: boolean
}

/**
 * The files of passes. A pass that may change files works in a sandbox: a folder with the project's files, made by git from a
 * snapshot of them. The project stays unchanged until `apply`, with any number of passes and even if the process dies.
 * Describable failures are returned as a `Refusal`, not thrown.
 */
export type Sandboxes = ReturnType<typeof createSandboxes>

export const createSandboxes = (deps: SandboxesDeps) => {
  const { state, directory, run, owners, passes, log, lockWaitMs = LOCK_WAIT_MS, freeSpace = freeSpaceOn } = deps
  const git = createGit(run)
  const findExcludes = lazy(() => findExcludesFile(run, directory))
  /** Not a valid pass id. Finished sandboxes are moved here to be deleted. */
  const aside = state.path("pass-over", ".removed")
  const open = new Map<string, Open>()

  /** Turns errors into refusals and logs them. */
  const guarded = async <T>(what: string, passID: string, work: () => Promise<T | Refusal>): Promise<T | Refusal> => {
    try {
      return await work()
    } catch (error) {
      log.warn(`${what} the files of a pass failed`, { passID, error: describeError(error) })
      if (error instanceof RefusalError) return error.refusal
      return refusals.failed(`${what} the files of pass ${passID} failed: ${describeError(error)}`)
    }
  }

  const withPass = <T>(
    what: string,
    passID: string,
    work: (folder: PassFolder, filesState: KnownFilesState) => Promise<T | Refusal>,
  ): Promise<T | Refusal> =>
    guarded(what, passID, async () => {
      const folder = passFolder(state, passID)
      if (statIfThere(folder.root) === undefined) return refusals.unknownPass(passID)
      const done = await owners.during(passID, async () => {
        const filesState = await readFilesState(folder)
        return filesState.kind === "none" ? refusals.unknownPass(passID) : work(folder, filesState)
      })
      return done === "busy" ? refusals.busy(`another process works on the pass ${passID}`) : done
    })

  const create = async (passID: string, { canModify, parent }: SandboxOptions): Promise<Sandbox | Refusal> => {
    const folder = passFolder(state, passID)
    const above = parent === undefined ? { directory, sandbox: undefined } : open.get(parent)
    if (above === undefined) return refusals.unknownPass(parent ?? "")
    if (!canModify) {
      const { directory: place, sandbox } = above
      const shared = { kind: "created", directory: place, sandbox, skipped: [], ready: MADE } as const
      open.set(passID, { ...shared, isOwn: false, isUsed: false, isDropped: false })
      return shared
    }
    const source = await findSource(above.directory, above.sandbox)
    if ((await readFilesState(folder)).kind !== "none") {
      return refusals.wrongState(`files of a pass ${passID} are kept already`, "Use another id.")
    }
    await state.prepare("pass-over", passID, "files")
    try {
      const tree = await scanSource(git, folder, source, {
        excludesFile: await findExcludes(),
        freeSpace: freeSpace(folder.root),
      })
      await saveTarget(state, folder, source.top)
      const made: Open = {
        kind: "created",
        isOwn: true,
        directory: join(folder.sandbox, relative(source.top, source.directory)),
        sandbox: folder.sandbox,
        skipped: tree.skipped,
        ready: MADE,
        isUsed: false,
        isDropped: false,
      }
      made.ready = guarded<undefined>("copying", passID, async () => {
        try {
          await fillSandbox(git, folder, { source, tree, isDropped: () => made.isDropped })
        } catch (error) {
          if (made.isDropped) return
          await removeFiles(folder)
          throw error
        }
      })
      open.set(passID, made)
      return made
    } catch (error) {
      await removeFiles(folder)
      throw error
    }
  }

  /** Finishes an apply that a crash cut off: what pass.json does not call applied is rolled back. */
  const recover = async (passID: string, place: ApplyPlace, { journal }: Extract<FilesState, { kind: "stored" }>) => {
    if (journal === undefined) return []
    const applied = await passes.appliedPaths(passID)
    if (!journal.files.every((path) => applied.includes(path))) return rollBack(place, journal)
    await dropJournal(place)
    return []
  }

  const placeOf = async (folder: PassFolder, target: string): Promise<ApplyPlace> => {
    const found = await findTarget(state, target)
    if (found !== undefined) return { git, target: found, store: folder.store, journal: folder.journal }
    const reason = `the folder that the pass began with is gone, or is none of this project: ${target}`
    throw new RefusalError(refusals.wrongState(reason, "Read the changes with pass_over_status instead."))
  }

  const store = async (folder: PassFolder, base: string, toolPaths: ReadonlySet<string>): Promise<StoredChanges> => {
    const { git: gitFolder, sandbox: top } = folder
    const isThere = statIfThere(top)?.isDirectory() === true
    await removeAll(folder.store)
    await createSnapshotRepository(folder.store)
    // A git of a killed process may hold the lock of the index, or have left it. Git compares times with the index's own.
    const index = join(folder.store, "child.index")
    if (statIfThere(folder.index)) await cp(folder.index, index, { preserveTimestamps: true })
    try {
      const found = isThere
        ? await collectChanges({ git, top, gitFolder, index, freeSpace }, { base, store: folder.store, toolPaths })
        : { files: [], skipped: [SANDBOX_IS_GONE] }
      const changes: StoredChanges = { version: 1, files: found.files, left_out: found.skipped }
      await removeAll(index)
      await saveChanges(folder, changes)
      return changes
    } catch (error) {
      // The sandbox has everything; a part of it would only fill the disk.
      await removeAll(folder.store)
      throw error
    }
  }

  const collectIn = async (
    passID: string,
    {
      folder,
      filesState,
      toolPaths,
    }: { folder: PassFolder; filesState: KnownFilesState; toolPaths: ReadonlySet<string> },
  ): Promise<Changes> => {
    if (filesState.kind === "working" && filesState.base === undefined) {
      // No tool of the child was let in, so the sandbox holds no work.
      await removeFiles(folder)
      return { ...NO_CHANGES, recovered: ["removed a sandbox that was never finished"] }
    }
    const recovered: string[] = []
    let leftAlone: readonly Skipped[] = []
    if (filesState.kind === "stored" && filesState.journal) {
      leftAlone = await recover(passID, await placeOf(folder, filesState.target), filesState)
      recovered.push("took back an apply that was cut off, or finished it")
    }
    const changes =
      filesState.kind === "stored" ? filesState.changes : await store(folder, filesState.base ?? "", toolPaths)
    if (filesState.kind === "working") recovered.push(`stored what the child changed: ${changes.files.length} files`)
    const { files, left_out: skipped } = changes
    if (!hasUncarried(skipped)) await discard(aside, [folder.git, folder.sandbox])
    return { kind: "changes", modifications: files.map(toModification), skipped, recovered, leftAlone }
  }

  const collect = async (passID: string, toolPaths: ReadonlySet<string> = new Set()): Promise<Changes | Refusal> => {
    const own = open.get(passID)
    open.delete(passID)
    if (own && !own.isOwn) return NO_CHANGES
    if (own && !own.isUsed) {
      // No tool worked in it, so nothing can have changed.
      own.isDropped = true
      return guarded("removing", passID, async () => {
        // git, which still makes it, would begin it anew at a place that the next attempt uses, too.
        await own.ready
        const { root, sandbox } = passFolder(state, passID)
        await discard(aside, [root, sandbox])
        return NO_CHANGES
      })
    }
    await own?.ready
    if (own && (await owners.isLost(passID))) {
      log.warn("another process took the files of a pass over", { passID })
      return refusals.takenOver(passID)
    }
    return withPass("storing", passID, (at, filesState) => collectIn(passID, { folder: at, filesState, toolPaths }))
  }

  return {
    /**
     * Begins a sandbox: all files on the disk, also uncommitted and untracked ones, without ignored ones. Git makes it while the
     * child is asked for its first step.
     */
    create: (passID: string, options: SandboxOptions) => guarded("beginning", passID, () => create(passID, options)),
    /** Lets in a tool of the child, or of a session below it. @returns the error of making the sandbox */
    ready: async (passID: string): Promise<Refusal | undefined> => {
      const own = open.get(passID)
      if (own) own.isUsed = true
      const missing = await own?.ready
      if (missing || own?.isOwn !== true) return missing
      return (await owners.isLost(passID)) ? refusals.takenOver(passID) : undefined
    },
    /**
     * Stores what an ended child changed, if it used its sandbox at all, and removes the sandbox; the project stays as it is. Of
     * a pass whose files are stored it finishes what a crash cut off. May be repeated: after a refusal nothing is lost.
     *
     * @param toolPaths files that the child's own tools wrote, for `by`; all others are changed by `shell`
     * @returns the differences from what the child began with
     */
    collect,
    /** Throws away what an attempt left, and begins anew. */
    reset: async (passID: string, options: SandboxOptions): Promise<Sandbox | Refusal> => {
      const own = open.get(passID)
      await own?.ready
      // Collected as if nothing had been done there.
      if (own) own.isUsed = false
      const dropped = await collect(passID)
      return dropped.kind === "refused" ? dropped : guarded("beginning", passID, () => create(passID, options))
    },
    /** Writes these changed files into the folder that the sandbox was made of, and notes them in the pass. */
    apply: (
      passID: string,
      paths: readonly string[],
      { allOrNothing, by }: ApplyOptions,
    ): Promise<{ readonly kind: "applied"; readonly files: readonly FileResult[] } | Refusal> =>
      withPass("applying", passID, async (folder, filesState) => {
        if (filesState.kind !== "stored") {
          return refusals.wrongState("the child still works", "Wait until the pass has returned.")
        }
        const lock = await acquireWithin(createFileLock({ path: state.path("pass-over", "apply.lock") }), lockWaitMs)
        if (lock === undefined) return refusals.busy("another pass is being applied")
        try {
          const place = await placeOf(folder, filesState.target)
          await recover(passID, place, filesState)
          const onWritten = (written: readonly string[]) => passes.recordApplied(passID, written, by)
          const selected = filesState.changes.files.filter(({ path }) => paths.includes(path))
          return { kind: "applied", files: await applyChanges(place, selected, { allOrNothing, onWritten }) }
        } finally {
          await lock.release()
        }
      }),
    diff: (passID: string): Promise<{ readonly kind: "diff"; readonly text: string } | Refusal> =>
      withPass("reading", passID, async (folder, filesState) => {
        const changed = filesState.kind === "stored" ? filesState.changes.files : []
        return { kind: "diff", text: changed.length === 0 ? "" : await renderPatch(git, folder.store, changed) }
      }),
    /** Returns the path of a pass's sandbox, whether it exists or not. */
    pathOf: (passID: string): string => state.path("pass-over", passID, "copy"),
    /**
     * Deletes finished sandboxes that earlier processes left. Those discarded after the call are not its: of two deletions in one
     * folder, Bun's may both end before it is empty. Never rejects.
     *
     * @param after is awaited before anything is deleted
     */
    sweep: async (after: Promise<unknown> = Promise.resolve()): Promise<void> => {
      try {
        const left = statIfThere(aside)?.isDirectory() ? readdirSync(aside) : []
        await after
        for (const name of left) await removeAll(join(aside, name))
      } catch (error) {
        log.warn("sandboxes of earlier passes could not be deleted", { error: describeError(error) })
      }
    },
  }
}
