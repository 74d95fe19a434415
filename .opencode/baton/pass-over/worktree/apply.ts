import { mkdir, rm } from "node:fs/promises"
import { dirname, join } from "node:path"
import { describeError } from "../../host/log.ts"
import { replaceFile } from "../../host/state.ts"
import { storeContent } from "./contents.ts"
import { identityOf, statIfThere } from "./disk.ts"
import type { PassFolder } from "./pass-folder.ts"
import type { HeldFile, Journal, JournalEntry } from "./stored.ts"
import { type SurveyDeps, type SurveyedFile, surveyFiles, type Write } from "./survey.ts"
import { removeUndo, undoJournal } from "./undo.ts"
import type { FileResult } from "./worktree.ts"
import { missingFoldersAbove, removeEmptyFoldersAbove, writeSide } from "./write-step.ts"

type Ready = Extract<SurveyedFile, { kind: "ready" }>

const TOO_LATE = "it changed in the very moment it was to be written"

/** Stores the present content before anything is written, and checks that it is the one that was judged. */
const prepareEntry = async (target: string, undo: string, { path, next, identity }: Write): Promise<JournalEntry> => {
  const place = join(target, path)
  const before = identity === undefined ? null : ((await storeContent(place, undo)) ?? null)
  const found = statIfThere(place)
  if (identity !== undefined && (found === undefined || identityOf(found) !== identity)) throw new Error(TOO_LATE)
  const temporary = `${path}.baton-pass.tmp`
  const permissions = (found?.mode ?? 0) & 0o7777
  return { path, before: before && { ...before, permissions }, after: next, temporary }
}

const writeEntry = async (target: string, folder: PassFolder, write: Write, entry: JournalEntry): Promise<void> => {
  const place = join(target, write.path)
  const found = statIfThere(place)
  if ((found === undefined || found.isDirectory() ? undefined : identityOf(found)) !== write.identity) {
    throw new Error(TOO_LATE)
  }
  if (write.next === null) {
    await rm(place)
    await removeEmptyFoldersAbove(target, write.path)
    return
  }
  const temporary = join(target, entry.temporary)
  await mkdir(dirname(place), { recursive: true })
  await writeSide({
    path: place,
    side: write.next,
    held: folder.held,
    temporary,
    permissions: entry.before?.permissions,
  })
}

/** Orders removals first, so that a file can replace a folder and vice versa. */
const removalsFirst = (writes: readonly Write[]): Write[] => [
  ...writes.filter(({ next }) => next === null),
  ...writes.filter(({ next }) => next !== null),
]

const byRemoval = (one: Ready, other: Ready): number =>
  Number(one.file.next !== null) - Number(other.file.next !== null)

export type ApplyDeps = SurveyDeps & {
  /** Called with a group's files once they are written, before their journal is removed. */
  readonly onWritten: (files: readonly HeldFile[]) => Promise<void>
}

/**
 * Writes a group of files, all or none. The journal holds the previous contents until the last file is written, so that a failure
 * or a crash can be undone.
 *
 * @returns the reason why nothing was written; undefined when everything was
 * @throws when undoing failed; the journal stays
 */
const writeGroup = async (deps: ApplyDeps, group: readonly Ready[]): Promise<string | undefined> => {
  const { target, folder, onWritten } = deps
  const writes = removalsFirst(group.flatMap((each) => each.writes))
  const journal: Journal = { version: 1, entries: [], made_folders: [] }
  await removeUndo(folder)
  await mkdir(folder.undo, { recursive: true })
  try {
    for (const write of writes) {
      journal.entries.push(await prepareEntry(target, folder.undo, write))
      if (write.next !== null) journal.made_folders.push(...(await missingFoldersAbove(target, write.path)))
    }
    await replaceFile(folder.journal, JSON.stringify(journal))
    for (const [at, write] of writes.entries()) {
      const entry = journal.entries[at]
      if (entry === undefined) throw new Error(`no journal entry for ${write.path}`)
      await writeEntry(target, folder, write, entry)
    }
    await onWritten(group.map(({ file }) => file))
  } catch (error) {
    const leftAlone = await undoJournal(target, folder, journal)
    await removeUndo(folder)
    const left = leftAlone.map(({ path }) => path).join(", ")
    return `${describeError(error)}${left === "" ? "" : `; left as somebody else made them: ${left}`}`
  }
  await removeUndo(folder)
  return undefined
}

const resultOf = (surveyed: SurveyedFile): FileResult => {
  const { path } = surveyed.file
  if (surveyed.kind === "already") return { path, outcome: "already-applied" }
  if (surveyed.kind === "ready") return { path, outcome: surveyed.isMerged ? "merged" : "applied" }
  return { path, outcome: "conflict", reason: surveyed.reason, mergeable: surveyed.isMergeable }
}

/**
 * Writes held files into the worktree, except those that were changed there meanwhile.
 *
 * @param options `allOrNothing`: with one conflict no file is written
 * @throws the file system's own error, when a file's state is unknown
 */
export const applyFiles = async (
  deps: ApplyDeps,
  files: readonly HeldFile[],
  { allOrNothing }: { allOrNothing: boolean },
): Promise<FileResult[]> => {
  const surveyed = await surveyFiles(deps, files)
  const ready = surveyed.filter((each) => each.kind === "ready").sort(byRemoval)
  const isRefused = allOrNothing && surveyed.some(({ kind }) => kind === "conflict")
  const groups = isRefused ? [] : allOrNothing ? [ready] : ready.map((each) => [each])
  const failures = new Map<SurveyedFile, string>()
  for (const group of groups.filter(({ length }) => length > 0)) {
    const failure = await writeGroup(deps, group)
    if (failure !== undefined) for (const each of group) failures.set(each, failure)
  }
  await deps.onWritten(surveyed.flatMap((each) => (each.kind === "already" ? [each.file] : [])))
  return surveyed.map((each) => {
    const failure = failures.get(each)
    if (failure !== undefined) return { path: each.file.path, outcome: "conflict", reason: failure, mergeable: false }
    if (isRefused && each.kind === "ready") return { path: each.file.path, outcome: "not-tried" }
    return resultOf(each)
  })
}
