/**
 * Puts the changes of a pass into the folder that its sandbox was made of. A journal has the undo data: it is written before the
 * first file, and dropped when pass.json says that the files are applied.
 */
import { randomBytes } from "node:crypto"
import { rm } from "node:fs/promises"
import { join } from "node:path"
import { describeError } from "../../host/log.ts"
import { replaceFile } from "../../host/state.ts"
import {
  type ApplyPlace,
  type Current,
  dropJournal,
  type Found,
  findLinkAbove,
  identityOf,
  readCurrent,
  removeEmptyFoldersAbove,
  rollBack,
  sameState,
  temporaryFor,
  writeFile,
} from "./journal.ts"
import { type Change, type FileState, statIfThere } from "./snapshot.ts"
import { type Journal, type JournalEntry, stageContents } from "./stored.ts"

/** The outcome for one file. A conflict left it unchanged. */
export type FileResult = {
  readonly path: string
  readonly outcome: "applied" | "already-applied" | "conflict" | "not-tried"
  /** For a conflict: what was expected and found. */
  readonly reason?: string
}

export const isApplied = ({ outcome }: FileResult): boolean => outcome !== "conflict" && outcome !== "not-tried"

type Write = { readonly path: string; readonly next: FileState | null; readonly before: Found | null }

type Resolved =
  | { readonly kind: "ready"; readonly change: Change; readonly writes: readonly Write[] }
  | { readonly kind: "already"; readonly change: Change }
  | { readonly kind: "conflict"; readonly change: Change; readonly reason: string }

/** A rename is two writes; both or none are done. */
const stepsOf = ({ path, previous_path, base, next }: Change): readonly Pick<Change, "path" | "base" | "next">[] =>
  previous_path === null
    ? [{ path, base, next }]
    : [
        { path: previous_path, base, next: null },
        { path, base: null, next },
      ]

const describe = (state: FileState | null): string =>
  state === null ? "not there" : `${state.mode === "120000" ? "a link" : "a file"} of ${state.size} bytes`

/** Allows a write only over what the pass began with, never over other changes. Changes nothing in the target. */
const resolveChange = (change: Change, found: ReadonlyMap<string, Current>): Resolved => {
  const writes: Write[] = []
  for (const { path, base, next } of stepsOf(change)) {
    const current = found.get(path) ?? null
    const conflict = (reason: string): Resolved => ({ kind: "conflict", change, reason })
    if (current !== null && "other" in current) return conflict(`${path} is ${current.other} now`)
    if (sameState(current, next)) continue
    if (sameState(current, base)) {
      writes.push({ path, next, before: current })
      continue
    }
    if (base === null) return conflict(`${path} was made by somebody else meanwhile`)
    return conflict(
      `${path} changed meanwhile: the pass began with ${describe(base)}, now there is ${describe(current)}`,
    )
  }
  return writes.length === 0 ? { kind: "already", change } : { kind: "ready", change, writes }
}

/** Removals first, so that a file can replace a folder and vice versa. */
const removalsFirst = <T>(items: readonly T[], isRemoval: (item: T) => boolean): T[] => [
  ...items.filter(isRemoval),
  ...items.filter((item) => !isRemoval(item)),
]

const writeEntry = async (
  { target }: ApplyPlace,
  { path, next, before }: Write,
  { staged, suffix }: { staged: string; suffix: string },
): Promise<void> => {
  const whole = join(target, path)
  const behindLink = findLinkAbove(target, path)
  if (behindLink !== undefined) throw new Error(behindLink)
  const found = statIfThere(whole)
  const isAsBefore = before === null ? !found || found.isDirectory() : found && identityOf(found) === before.identity
  if (!isAsBefore) throw new Error("it changed in the very moment it was to be written")
  if (next === null) {
    await rm(whole)
    await removeEmptyFoldersAbove(target, path)
    return
  }
  const permissions = before === null ? {} : { before: before.permissions }
  await writeFile(whole, { state: next, staged, temporary: temporaryFor(whole, suffix), ...permissions })
}

/**
 * Writes a group of changes, all or none.
 *
 * @param staged folder with the contents
 * @param onWritten stores that they are applied, before the undo data is dropped
 * @returns the reason why nothing was written; undefined when everything was
 * @throws when rolling back failed; the journal stays
 */
const writeGroup = async (
  place: ApplyPlace,
  { group, staged }: { group: readonly Extract<Resolved, { kind: "ready" }>[]; staged: string },
  onWritten: (paths: readonly string[]) => Promise<void>,
): Promise<string | undefined> => {
  const writes = removalsFirst(
    group.flatMap((each) => each.writes),
    ({ next }) => next === null,
  )
  const files = group.map(({ change }) => change.path)
  const entries = writes.map(({ path, next, before }): JournalEntry => ({ path, before, after: next }))
  const journal: Journal = { version: 1, files, entries, suffix: randomBytes(8).toString("hex") }
  try {
    await replaceFile(place.journal, JSON.stringify(journal))
    for (const write of writes) await writeEntry(place, write, { staged, suffix: journal.suffix })
    await onWritten(files)
  } catch (error) {
    const left = (await rollBack(place, journal)).map(({ path }) => path).join(", ")
    return `${describeError(error)}${left === "" ? "" : `; left as somebody else made them: ${left}`}`
  }
  await dropJournal(place)
  return undefined
}

/** Files that are written with one journal and one record: each of these costs about as much as all files that it names. */
const GROUP_FILES = 200

const groupsOf = <T>(items: readonly T[], size: number): T[][] =>
  Array.from({ length: Math.ceil(items.length / size) }, (_, at) => items.slice(at * size, (at + 1) * size))

/**
 * Writes changes into the target, except over other changes made meanwhile.
 *
 * @param options `allOrNothing`: with one conflict no file is written; else `groupSize` files are written at once. `onWritten`: see `writeGroup`; also called for changes
 *   that are there already
 * @throws RefusalError for a damaged content, before anything is written; the file system's own error, when a file's state is unknown
 */
export const applyChanges = async (
  place: ApplyPlace,
  changes: readonly Change[],
  {
    allOrNothing,
    onWritten,
    groupSize = GROUP_FILES,
  }: {
    allOrNothing: boolean
    onWritten: (paths: readonly string[]) => Promise<void>
    groupSize?: number
  },
): Promise<FileResult[]> => {
  const steps = changes.flatMap(stepsOf)
  const removed = new Set(steps.flatMap(({ path, next }) => (next === null ? [path] : [])))
  const paths = steps.map(({ path }) => path)
  const found = await readCurrent(place, paths, removed)
  const resolved = changes.map((change) => resolveChange(change, found))
  const ready = removalsFirst(
    resolved.filter((each) => each.kind === "ready"),
    ({ change }) => change.next === null,
  )
  const isRefused = allOrNothing && resolved.some(({ kind }) => kind === "conflict")
  const groups = isRefused ? [] : groupsOf(ready, allOrNothing ? ready.length : groupSize)
  const failures = new Map<Resolved, string>()
  const again: Change[] = []
  const staged = join(place.store, "staged")
  const oids = groups.flat().flatMap(({ writes }) => writes.flatMap(({ next }) => next?.oid ?? []))
  await stageContents(place.git, place.store, staged, oids)
  for (const group of groups) {
    const failure = await writeGroup(place, { group, staged }, onWritten)
    if (failure === undefined) continue
    if (allOrNothing || group.length === 1) for (const each of group) failures.set(each, failure)
    else again.push(...group.map(({ change }) => change))
  }
  await rm(staged, { recursive: true, force: true })
  // Of a group that failed each file is tried alone: the others are not to suffer for one.
  const alone = { allOrNothing, onWritten, groupSize: 1 }
  const retried = again.length === 0 ? [] : await applyChanges(place, again, alone)
  const already = resolved.flatMap(({ kind, change }) => (kind === "already" ? [change.path] : []))
  if (already.length > 0) await onWritten(already)
  return resolved.map((each): FileResult => {
    const { path } = each.change
    const retry = retried.find((result) => result.path === path)
    if (retry) return retry
    const failure = failures.get(each)
    if (failure !== undefined) return { path, outcome: "conflict", reason: failure }
    if (each.kind === "already") return { path, outcome: "already-applied" }
    if (each.kind === "conflict") return { path, outcome: "conflict", reason: each.reason }
    return { path, outcome: isRefused ? "not-tried" : "applied" }
  })
}
