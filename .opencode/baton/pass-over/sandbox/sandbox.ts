import { realpath } from "node:fs/promises"
import { join, relative, sep } from "node:path"
import { lazy } from "../../host/async.ts"
import { describeError, type Log } from "../../host/log.ts"
import type { RunProcess } from "../../host/process.ts"
import type { StateFolder } from "../../host/state.ts"
import { applyChanges, type FileResult } from "./apply.ts"
import { describeChanges } from "./contents.ts"
import { discard, fillSandbox, findSource, lookAtSource, removeAll } from "./create.ts"
import { type ApplyPlace, dropJournal, takeBack } from "./journal.ts"
import { createPassLocks } from "./locks.ts"
import { describeEarlier, listPending, refuseEarlier } from "./pending.ts"
import {
  createGit,
  createSnapshotRepository,
  findExcludesFile,
  type Refusal,
  RefusalError,
  refusals,
} from "./repository.ts"
import { collectChanges, excluderFor, hasUncarried, statIfThere } from "./snapshot.ts"
import {
  countHeld,
  describeMissing,
  type EarlierPass,
  type HeldChanges,
  type HeldFile,
  PASSES_FOLDER,
  type PassFolder,
  passFolder,
  readStage,
  rejectEarlier,
  SANDBOX_IS_GONE,
  type SandboxRecord,
  type Stage,
  saveChanges,
  saveRecord,
  selectFiles,
  targetOf,
  targetPath,
  withFate,
} from "./stored.ts"
import type { Applied, ApplyOptions, BeginOptions, Begun, Changes, Rejected, Restored } from "./types.ts"

type SandboxesDeps = {
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

const stillWorks = () => refusals.wrongState("the child still works", "Wait until the pass has returned.")
const interrupted = () =>
  refusals.wrongState("an apply was interrupted", "Run `baton passes restore` with the pass's id first.")
/** Place of an originator: OpenCode's directory, or the sandbox of a pass that still runs. */
type Origin = { readonly directory: string; readonly copy?: string }
/** A sandbox of this process. `isUsed`: a tool was let in. */
type Making = { ready: Promise<Refusal | undefined>; isUsed: boolean; isDropped: boolean }

/**
 * The files of passes. A pass that may change files works in a sandbox: a folder with the project's files, made by git from a
 * snapshot of them. The project stays unchanged until `apply`, with any number of passes and even if the process dies.
 * Describable failures are returned as a `Refusal`, not thrown.
 */
export type Sandboxes = ReturnType<typeof createSandboxes>

export const createSandboxes = (deps: SandboxesDeps) => {
  const { state, directory, run, log, now, lockWaitMs = LOCK_WAIT_MS } = deps
  const git = createGit(run)
  const findExcludes = lazy(() => findExcludesFile(run, directory))
  const locks = createPassLocks({ waitMs: lockWaitMs })
  const applyLock = state.path(PASSES_FOLDER, "apply.lock")
  /** Not a valid pass id. Finished sandboxes are moved here to be deleted. */
  const aside = state.path(PASSES_FOLDER, ".removed")
  /** Passes without the right to change files: they have nothing to store. */
  const readOnly = new Map<string, Origin>()
  const makings = new Map<string, Making>()

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

  type KnownStage = Exclude<Stage, { kind: "none" | "earlier" }>
  type Work<T> = {
    readonly known: (folder: PassFolder, stage: KnownStage) => Promise<T | Refusal>
    readonly earlier: (folder: PassFolder, pass: EarlierPass) => Promise<T | Refusal>
  }

  const withPass = <T>(what: string, passID: string, work: Work<T>): Promise<T | Refusal> =>
    guarded(what, passID, async () => {
      const folder = passFolder(state, passID)
      if (folder === undefined || (await readStage(folder)).kind === "none") return refusals.unknownPass(passID)
      const done = await locks.during(passID, folder.lock, async () => {
        // The previous holder of the lock may have changed it.
        const stage = await readStage(folder)
        if (stage.kind === "none") return refusals.unknownPass(passID)
        return stage.kind === "earlier" ? await work.earlier(folder, stage.pass) : await work.known(folder, stage)
      })
      return done === "busy" ? refusals.busy(`another process works on the pass ${passID}`) : done
    })

  /** The record goes first: a sandbox without one belongs to no pass. */
  const removeFiles = async ({ root, copy }: PassFolder): Promise<void> => {
    await removeAll(root)
    await removeAll(copy)
  }
  const removeStoredCopy = async ({ git: own, copy }: PassFolder, { left_out }: HeldChanges): Promise<void> => {
    if (!hasUncarried(left_out)) await discard(aside, [own, copy])
  }

  const originOf = async (parent: string | undefined): Promise<Origin | Refusal> => {
    if (parent === undefined) return { directory }
    const shared = readOnly.get(parent)
    if (shared !== undefined) return shared
    const above = passFolder(state, parent)
    const stage = above && (await readStage(above))
    if (above === undefined || stage?.kind !== "working") return refusals.unknownPass(parent)
    return { directory: join(above.copy, stage.record.directory), copy: above.copy }
  }

  const begin = async (passID: string, { canModify, parent }: BeginOptions): Promise<Begun | Refusal> => {
    const folder = passFolder(state, passID)
    const origin = await originOf(parent)
    if (folder === undefined) return refusals.unknownPass(passID)
    if ("kind" in origin) return origin
    if (!canModify) {
      readOnly.set(passID, origin)
      return { kind: "begun", directory: origin.directory, copy: origin.copy, leftOut: [], made: MADE }
    }
    const source = await findSource(origin.directory, origin.copy)
    if ((await readStage(folder)).kind !== "none") {
      return refusals.wrongState(`files of a pass ${passID} are kept already`, "Use another id.")
    }
    await state.prepare(PASSES_FOLDER, passID, "files")
    if (!(await locks.keep(passID, folder.lock))) return refusals.busy(`another process works on the pass ${passID}`)
    try {
      const { top } = source
      // A parent's sandbox has no state of its own; the same path is left out of it.
      const own = origin.copy === undefined ? relative(top, await realpath(state.root)) : ".opencode/state"
      const record: SandboxRecord = {
        version: 1,
        began_at: now().toISOString(),
        directory: relative(top, source.directory),
        target: await targetPath(state, top),
        own_folder: own.split(sep).join("/"),
      }
      const tree = await lookAtSource(git, folder, { source, own: record, excludesFile: await findExcludes() })
      await saveRecord(folder, record)
      log.debug("the files of a pass are begun", { passID })
      const making: Making = { ready: MADE, isUsed: false, isDropped: false }
      making.ready = guarded<undefined>("copying", passID, async () => {
        try {
          await fillSandbox(git, folder, { source, tree, isDropped: () => making.isDropped })
        } catch (error) {
          if (making.isDropped) return
          await removeFiles(folder)
          await locks.letGo(passID)
          throw error
        }
      })
      makings.set(passID, making)
      const place = join(folder.copy, record.directory)
      return { kind: "begun", directory: place, copy: folder.copy, leftOut: tree.leftOut, made: making.ready }
    } catch (error) {
      await removeFiles(folder)
      await locks.letGo(passID)
      throw error
    }
  }

  const apply = (passID: string, options: ApplyOptions = {}): Promise<Applied | Refusal> =>
    withPass<Applied>("applying", passID, {
      known: async (folder, stage) => {
        if (stage.kind === "applying") return interrupted()
        if (stage.kind === "working") return stillWorks()
        const done = await locks.during("apply", applyLock, () => applyHeld(folder, stage, options))
        return done === "busy" ? refusals.busy("another pass is being applied") : done
      },
      earlier: async (folder) => refuseEarlier(folder),
    })

  const placeOf = async (folder: PassFolder, record: SandboxRecord): Promise<ApplyPlace | Refusal> => {
    const target = await targetOf(state, record)
    if (target !== undefined) return { git, target, store: folder.store, journal: folder.journal }
    const reason = `the folder that the pass began with is gone, or is none of this project: ${record.target}`
    return refusals.wrongState(reason, "Read the changes with pass_over_status instead.")
  }

  const applyHeld = async (
    folder: PassFolder,
    { record, changes }: Extract<Stage, { kind: "held" }>,
    { paths, merge = false, allOrNothing = true }: ApplyOptions,
  ): Promise<Applied | Refusal> => {
    const place = await placeOf(folder, record)
    if ("kind" in place) return place
    const missing = describeMissing(changes.files, paths ?? [])
    const isRefused = allOrNothing && missing.some(({ outcome }) => outcome === "conflict")
    const selected = selectFiles(changes.files, paths)
    let current = changes
    const onWritten = async (files: readonly { readonly path: string }[]): Promise<void> => {
      const next = withFate(current, new Set(files.map(({ path }) => path)), "applied")
      await saveChanges(folder, next)
      // Only stored changes: a group whose storing failed is taken back.
      current = next
    }
    const results: readonly FileResult[] = isRefused
      ? selected.map(({ path }) => ({ path, outcome: "not-tried" }))
      : await applyChanges(place, selected, { merge, allOrNothing, onWritten })
    const files = [...results, ...missing]
    // A process that ended during the removal may have left it.
    await removeStoredCopy(folder, current)
    const complete = files.every(({ outcome }) => ["applied", "merged", "already-applied"].includes(outcome))
    return { kind: "applied", complete, files, held: countHeld(current) }
  }

  /** Reads the child's changes so far from its sandbox, and stores their contents. */
  const collect = async (
    folder: PassFolder,
    { record, base }: Extract<Stage, { kind: "working" }>,
    toolPaths: ReadonlySet<string>,
  ): Promise<HeldChanges> => {
    if (base === undefined) {
      throw new RefusalError(
        refusals.damaged(`the pass was never begun in full: ${folder.git} has no tree to compare with`),
      )
    }
    const { git: gitFolder, index, copy, store } = folder
    if (statIfThere(copy)?.isDirectory() !== true) return SANDBOX_IS_GONE
    await removeAll(store)
    await createSnapshotRepository(store)
    const isExcluded = excluderFor(record.own_folder)
    const found = await collectChanges({ git, top: copy, gitFolder, index }, { base, store, isExcluded, toolPaths })
    const files = found.files.map((file): HeldFile => ({ ...file, fate: "held" }))
    return { version: 1, files, left_out: found.leftOut }
  }

  /** Stores the changes of a child that has ended, then removes its sandbox. */
  const hold = async (
    folder: PassFolder,
    stage: Extract<Stage, { kind: "working" }>,
    toolPaths: ReadonlySet<string>,
  ): Promise<HeldChanges> => {
    const changes = await collect(folder, stage, toolPaths)
    await saveChanges(folder, changes)
    await removeStoredCopy(folder, changes)
    return changes
  }

  const describe = async (folder: PassFolder, { files, left_out: leftOut }: HeldChanges): Promise<Changes> => ({
    kind: "changes",
    modifications: await describeChanges(git, folder.store, files),
    leftOut,
  })

  const withhold = async (passID: string, toolPaths = NO_PATHS): Promise<Changes | Refusal> => {
    if (readOnly.delete(passID)) return NO_CHANGES
    const making = makings.get(passID)
    makings.delete(passID)
    const folder = passFolder(state, passID)
    if (making && !making.isUsed && folder) {
      // No tool worked in it, so nothing can have changed.
      making.isDropped = true
      const dropped = await guarded("removing", passID, async () => {
        await discard(aside, [folder.root, folder.copy], making.ready)
        return NO_CHANGES
      })
      await locks.letGo(passID)
      return dropped
    }
    await making?.ready
    const held = await withPass<Changes>("storing", passID, {
      known: async (at, stage) =>
        await describe(at, stage.kind === "working" ? await hold(at, stage, toolPaths) : stage.changes),
      earlier: async (at) => describeEarlier(at),
    })
    await locks.letGo(passID)
    return held
  }

  const restore = (passID: string): Promise<Restored | Refusal> =>
    withPass<Restored>("restoring", passID, {
      known: async (folder, stage) => {
        if (stage.kind === "applying") {
          const place = await placeOf(folder, stage.record)
          if ("kind" in place) return place
          const leftAlone = await takeBack(place, stage.journal)
          const { entries } = stage.journal
          const again = withFate(stage.changes, new Set(entries.map(({ path }) => path)), "held")
          await saveChanges(folder, again)
          await dropJournal(place)
          const did = [`took back ${entries.length} writes of an apply that was interrupted`]
          return { kind: "restored", did, leftAlone, held: countHeld(again) }
        }
        if (stage.kind === "held") {
          await removeStoredCopy(folder, stage.changes)
          return { kind: "restored", did: [], leftAlone: [], held: countHeld(stage.changes) }
        }
        if (stage.base === undefined) {
          // No tool of the child was let in, so the sandbox holds no work.
          await removeFiles(folder)
          return { kind: "restored", did: ["removed a copy that was never finished"], leftAlone: [], held: 0 }
        }
        const changes = await hold(folder, stage, NO_PATHS)
        const did = [`stored what a child changed whose process is gone: ${changes.files.length} files`]
        return { kind: "restored", did, leftAlone: changes.left_out, held: countHeld(changes) }
      },
      earlier: async (_, { held }) => ({ kind: "restored", did: [], leftAlone: [], held: held.length }),
    })

  return {
    /**
     * Begins a sandbox: all files on the disk, also uncommitted and untracked ones, without ignored ones. Git makes it while the
     * child is asked for its first step.
     *
     * @param options `parent`: the pass that the originator itself works in. The sandbox is then made of the parent's, and
     * `apply` writes there, so that a chain of passes hands its work back step by step.
     */
    begin: (passID: string, options: BeginOptions) => guarded("beginning", passID, () => begin(passID, options)),
    /** Lets in a tool of the child, or of a session below it. @returns the error of making the sandbox */
    ready: async (passID: string): Promise<Refusal | undefined> => {
      const making = makings.get(passID)
      if (making) making.isUsed = true
      return await making?.ready
    },
    /**
     * Returns the differences from what the child began with: from its sandbox while it works, later from the held changes.
     *
     * @param toolPaths files that the child's own tools wrote, for `by`; all others are changed by `shell`
     */
    changes: async (passID: string, toolPaths = NO_PATHS): Promise<Changes | Refusal> => {
      if (readOnly.has(passID)) return NO_CHANGES
      await makings.get(passID)?.ready
      return await withPass<Changes>("reading", passID, {
        known: async (folder, stage) =>
          await describe(folder, stage.kind === "working" ? await collect(folder, stage, toolPaths) : stage.changes),
        earlier: async (folder) => describeEarlier(folder),
      })
    },
    /**
     * Stores the changes of an ended child and removes its sandbox, if it was used at all. Does not touch the project. May be
     * repeated: after a refusal the sandbox stays, and its lock is released.
     */
    withhold,
    /** Calls `withhold`, then applies or merges what it can file by file (`auto_apply`); conflicts stay held. */
    keep: async (passID: string, toolPaths?: ReadonlySet<string>): Promise<Applied | Refusal> => {
      if (readOnly.has(passID)) return { kind: "applied", complete: true, files: [], held: 0 }
      const held = await withhold(passID, toolPaths)
      return held.kind === "refused" ? held : await apply(passID, { merge: true, allOrNothing: false })
    },
    apply,
    /** Rejects held files (all when `paths` is absent); they stay readable through `changes`. */
    reject: (passID: string, paths?: readonly string[]): Promise<Rejected | Refusal> =>
      withPass<Rejected>("rejecting", passID, {
        known: async (folder, stage) => {
          if (stage.kind === "applying") return interrupted()
          if (stage.kind === "working") return stillWorks()
          const selected = selectFiles(stage.changes.files, paths).map(({ path }) => path)
          const rest = withFate(stage.changes, new Set(selected), "rejected")
          const named = rest.files.filter(({ path }) => paths?.includes(path) ?? selected.includes(path))
          const ofFate = (fate: HeldFile["fate"]) => named.filter((file) => file.fate === fate).map(({ path }) => path)
          await saveChanges(folder, rest)
          await removeStoredCopy(folder, rest)
          return { kind: "rejected", paths: ofFate("rejected"), applied: ofFate("applied"), held: countHeld(rest) }
        },
        earlier: async (folder, pass) => {
          const given = await rejectEarlier(folder, pass, paths)
          return { kind: "rejected", paths: given, applied: [], held: pass.held.length - given.length }
        },
      }),
    /** Passes that are not settled, oldest first. */
    pending: () => listPending(state),
    /** Returns the path of a pass's sandbox, whether it exists or not. */
    copyOf: (passID: string): string => state.path(PASSES_FOLDER, passID, "copy"),
    /** After a crash: stores the changes in a dead child's sandbox, and takes back an interrupted `apply`. Loses nothing. */
    restore,
    /** Deletes finished sandboxes that earlier processes left. Never rejects. */
    sweep: async (): Promise<void> => {
      try {
        await removeAll(aside)
      } catch (error) {
        log.warn("sandboxes of earlier passes could not be deleted", { error: describeError(error) })
      }
    },
  }
}
