/** Puts the changes of a pass into the folder that its sandbox was made of, all or none, and takes them back. */
import { copyFile, mkdir, rm } from "node:fs/promises"
import { dirname, join } from "node:path"
import { describeError } from "../../host/log.ts"
import { replaceFile } from "../../host/state.ts"
import { stageContents } from "./contents.ts"
import {
  type ApplyPlace,
  dropJournal,
  type Found,
  identityOf,
  isSame,
  type Journal,
  type JournalEntry,
  missingFoldersAbove,
  removeFolderIfEmpty,
  takeBack,
  takeCurrent,
  temporaryFor,
  writeSide,
} from "./journal.ts"
import { RefusalError } from "./repository.ts"
import { type Change, type Side, statIfThere } from "./snapshot.ts"

/** The outcome for one file. A conflict left it unchanged. */
export type FileResult = {
  readonly path: string
  readonly outcome: "applied" | "merged" | "already-applied" | "conflict" | "not-tried"
  /** For a conflict: what was expected and found, and whether `merge` would succeed. */
  readonly reason?: string
  readonly mergeable?: boolean
}

type Step = { readonly path: string; readonly base: Side | null; readonly next: Side | null }
type Write = { readonly path: string; readonly next: Side | null; readonly before: Found | null }

type Judged =
  | { readonly kind: "ready"; readonly change: Change; readonly isMerged: boolean; readonly writes: readonly Write[] }
  | { readonly kind: "already"; readonly change: Change }
  | { readonly kind: "conflict"; readonly change: Change; readonly reason: string; readonly isMergeable: boolean }

/** A rename is two writes; both or none are done. */
const stepsOf = ({ path, previous_path, base, next }: Change): readonly Step[] =>
  previous_path === null
    ? [{ path, base, next }]
    : [
        { path: previous_path, base, next: null },
        { path, base: null, next },
      ]

const isFile = (side: Side | null): side is Side => side !== null && side.mode !== "120000"

const describe = (side: Side | null): string =>
  side === null ? "not there" : `${side.mode === "120000" ? "a link" : "a file"} of ${side.size} bytes`

/** The side that changed the mode wins; undefined when both changed it differently. */
const mergeMode = (base: Side, current: Side, next: Side): Side["mode"] | undefined => {
  if (current.mode === base.mode || current.mode === next.mode) return next.mode
  return next.mode === base.mode ? current.mode : undefined
}

/** Merges another's change of a file with the pass's. @returns undefined when they conflict, or the file is not text */
const merge = async ({ git, store }: ApplyPlace, base: Side, current: Side, next: Side): Promise<Side | undefined> => {
  const mode = mergeMode(base, current, next)
  if (mode === undefined) return undefined
  const folder = join(store, "merge")
  await stageContents(git, store, folder, [base.oid, current.oid, next.oid])
  try {
    await copyFile(join(folder, current.oid), join(folder, "merged"))
    const options = { cwd: folder, gitFolder: store }
    await git(["merge-file", "-q", "merged", base.oid, next.oid], options)
    const oid = (await git(["hash-object", "-w", "--no-filters", "merged"], { ...options, isDurable: true })).trim()
    return { mode, oid, size: statIfThere(join(folder, "merged"))?.size ?? 0 }
  } catch (error) {
    if (error instanceof RefusalError) throw error
    return undefined
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** Allows a write only over what the pass began with, never over other changes. Changes nothing in the target. */
const judge = async (place: ApplyPlace, changes: readonly Change[], isMergeWanted: boolean): Promise<Judged[]> => {
  const steps = changes.flatMap(stepsOf)
  const removed = new Set(steps.flatMap(({ path, next }) => (next === null ? [path] : [])))
  const found = await takeCurrent(
    place,
    steps.map(({ path }) => path),
    removed,
  )

  const judgeOne = async (change: Change): Promise<Judged> => {
    const writes: Write[] = []
    let isMerged = false
    for (const { path, base, next } of stepsOf(change)) {
      const current = found.get(path) ?? null
      const conflict = (reason: string, isMergeable = false): Judged => ({
        kind: "conflict",
        change,
        reason,
        isMergeable,
      })
      if (current !== null && "other" in current) return conflict(`${path} is ${current.other} now`)
      if (isSame(current, next)) continue
      if (isSame(current, base)) {
        writes.push({ path, next, before: current })
        continue
      }
      if (base === null) return conflict(`${path} was made by somebody else meanwhile`)
      const reason = `${path} changed meanwhile: the pass began with ${describe(base)}, now there is ${describe(current)}`
      const areFiles = isFile(base) && isFile(next) && isFile(current)
      const merged = areFiles ? await merge(place, base, current, next) : undefined
      if (!merged || !isMergeWanted) return conflict(reason, merged !== undefined)
      isMerged = true
      writes.push({ path, next: merged, before: current })
    }
    return writes.length === 0 ? { kind: "already", change } : { kind: "ready", change, isMerged, writes }
  }

  const judged: Judged[] = []
  for (const change of changes) judged.push(await judgeOne(change))
  return judged
}

const isUnchanged = (target: string, { path, before }: Write): boolean => {
  const found = statIfThere(join(target, path))
  if (before === null) return found === undefined || found.isDirectory()
  return found !== undefined && identityOf(found) === before.identity
}

const writeEntry = async (place: ApplyPlace, staged: string, write: Write, temporary: string): Promise<void> => {
  const { target } = place
  const path = join(target, write.path)
  if (!isUnchanged(target, write)) throw new Error("it changed in the very moment it was to be written")
  if (write.next === null) {
    await rm(path)
    for (let folder = dirname(write.path); folder !== "."; folder = dirname(folder)) {
      if (!(await removeFolderIfEmpty(join(target, folder)))) break
    }
    return
  }
  await mkdir(dirname(path), { recursive: true })
  const before = write.before?.permissions
  await writeSide(path, { side: write.next, staged, temporary: join(target, temporary), before })
}

/** Removals first, so that a file can replace a folder and vice versa. */
const removalsFirst = <T>(items: readonly T[], isRemoval: (item: T) => boolean): T[] => [
  ...items.filter(isRemoval),
  ...items.filter((item) => !isRemoval(item)),
]

/**
 * Writes a group of changes, all or none.
 *
 * @param staged folder with the contents
 * @param onWritten stores that they are applied, before the way back is dropped
 * @returns the reason why nothing was written; undefined when everything was
 * @throws when taking back failed; the journal stays
 */
const writeGroup = async (
  place: ApplyPlace,
  { group, staged }: { group: readonly Extract<Judged, { kind: "ready" }>[]; staged: string },
  onWritten: (changes: readonly Change[]) => Promise<void>,
): Promise<string | undefined> => {
  const { target } = place
  const writes = removalsFirst(
    group.flatMap((each) => each.writes),
    ({ next }) => next === null,
  )
  const entries = writes.map(
    ({ path, next, before }): JournalEntry => ({ path, before, after: next, temporary: temporaryFor(path) }),
  )
  const made = writes.flatMap(({ path, next }) => (next === null ? [] : missingFoldersAbove(target, path)))
  const journal: Journal = { version: 1, entries, made_folders: made }
  try {
    await replaceFile(place.journal, JSON.stringify(journal))
    for (const [at, write] of writes.entries()) await writeEntry(place, staged, write, entries[at]?.temporary ?? "")
    await onWritten(group.map(({ change }) => change))
  } catch (error) {
    const leftAlone = await takeBack(place, journal)
    await dropJournal(place)
    const left = leftAlone.map(({ path }) => path).join(", ")
    return `${describeError(error)}${left === "" ? "" : `; left as somebody else made them: ${left}`}`
  }
  await dropJournal(place)
  return undefined
}

/**
 * Writes changes into the target, except over other changes made meanwhile.
 *
 * @param options `allOrNothing`: with one conflict no file is written. `onWritten`: see `writeGroup`; also called for changes
 *   that are there already
 * @throws RefusalError for a damaged content, before anything is written; the file system's own error, when a file's state is unknown
 */
export const applyChanges = async (
  place: ApplyPlace,
  changes: readonly Change[],
  {
    merge: isMergeWanted,
    allOrNothing,
    onWritten,
  }: { merge: boolean; allOrNothing: boolean; onWritten: (changes: readonly Change[]) => Promise<void> },
): Promise<FileResult[]> => {
  const judged = await judge(place, changes, isMergeWanted)
  const ready = removalsFirst(
    judged.filter((each) => each.kind === "ready"),
    ({ change }) => change.next === null,
  )
  const isRefused = allOrNothing && judged.some(({ kind }) => kind === "conflict")
  const groups = isRefused || ready.length === 0 ? [] : allOrNothing ? [ready] : ready.map((each) => [each])
  const failures = new Map<Judged, string>()
  const staged = join(place.store, "staged")
  const oids = groups.flat().flatMap(({ writes }) => writes.flatMap(({ next }) => next?.oid ?? []))
  await stageContents(place.git, place.store, staged, oids)
  for (const group of groups) {
    const failure = await writeGroup(place, { group, staged }, onWritten)
    if (failure !== undefined) for (const each of group) failures.set(each, failure)
  }
  await rm(staged, { recursive: true, force: true })
  const already = judged.flatMap((each) => (each.kind === "already" ? [each.change] : []))
  if (already.length > 0) await onWritten(already)
  return judged.map((each): FileResult => {
    const { path } = each.change
    const failure = failures.get(each)
    if (failure !== undefined) return { path, outcome: "conflict", reason: failure, mergeable: false }
    if (each.kind === "already") return { path, outcome: "already-applied" }
    if (each.kind === "conflict") return { path, outcome: "conflict", reason: each.reason, mergeable: each.isMergeable }
    return { path, outcome: isRefused ? "not-tried" : each.isMerged ? "merged" : "applied" }
  })
}
