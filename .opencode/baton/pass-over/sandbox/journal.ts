/** The journal of writes into a project, and their undo. */
import { createReadStream, type Stats } from "node:fs"
import { chmod, mkdir, open, readFile, rename, rm, rmdir, symlink } from "node:fs/promises"
import { dirname, join } from "node:path"
import { errorCode } from "../../host/log.ts"
import { type Git, parseList, removeIndex } from "./repository.ts"
import { addFiles, createFolderCheck, type FileState, MODES, modeOf, type Skipped, statIfThere } from "./snapshot.ts"
import { type Journal, type JournalEntry, stageAndCheck } from "./stored.ts"

export type ApplyPlace = {
  readonly git: Git
  /** Folder that is written to. */
  readonly target: string
  /** Repository with the contents; those found in the target are stored there, too. */
  readonly store: string
  /** Path of the journal. */
  readonly journal: string
}

/** State of a path: missing, a file or link, or something that a pass never overwrites. */
export type Found = FileState & { readonly permissions: number; readonly identity: string }
export type Current = Found | null | { readonly other: string }

/** A value that changes when the file is written, replaced or gets another mode, to the resolution of the file system. */
export const identityOf = ({ ino, size, mtimeMs, ctimeMs, mode }: Stats): string =>
  [ino, size, mtimeMs, ctimeMs, mode].join(":")

export const sameState = (one: FileState | null, other: FileState | null): boolean =>
  one === null || other === null ? one === other : one.oid === other.oid && one.mode === other.mode

const foldersAbove = (path: string): string[] =>
  dirname(path) === "." ? [] : [dirname(path), ...foldersAbove(dirname(path))]

/** Looks anew each time. @returns why a path is left alone: a link above it, which may lead out of the target */
export const findLinkAbove = (target: string, path: string): string | undefined => {
  const link = foldersAbove(path).findLast((folder) => statIfThere(join(target, folder))?.isSymbolicLink())
  return link === undefined ? undefined : `${path} is behind ${link}, which is a link now`
}

/** Stores the current contents of these paths: the check for changes of others, and the undo data. */
export const readCurrent = async (
  { git, target, store }: ApplyPlace,
  paths: readonly string[],
  removed: ReadonlySet<string> = new Set(),
): Promise<Map<string, Current>> => {
  const current = new Map<string, Current>()
  const hasRealFolders = createFolderCheck(target)
  const files = new Map<string, Stats>()
  for (const path of paths) {
    current.set(path, null)
    if (!hasRealFolders(path)) {
      const isInTheWay = (folder: string): boolean =>
        !removed.has(folder) && statIfThere(join(target, folder))?.isDirectory() === false
      const other = foldersAbove(path).findLast(isInTheWay)
      if (other !== undefined) current.set(path, { other: `behind ${other}, which is no folder,` })
      continue
    }
    const found = statIfThere(join(target, path))
    if (found?.isDirectory()) {
      // A folder that this pass empties makes room for a file.
      if (![...removed].some((each) => each.startsWith(`${path}/`))) current.set(path, { other: "a folder" })
    } else if (found && modeOf(found) === undefined) current.set(path, { other: "neither a file nor a link" })
    else if (found) files.set(path, found)
  }
  if (files.size === 0) return current
  const index = join(store, "current.index")
  await removeIndex(index)
  await addFiles({ git, top: target, gitFolder: store, index }, [...files.keys()], { isDurable: true })
  for (const field of parseList(await git(["ls-files", "-s", "-z"], { cwd: target, gitFolder: store, index }))) {
    const [, mode, oid = "", path = ""] = /^(\d+) (\w+) 0\t(.*)$/s.exec(field) ?? []
    const known = MODES.find((each) => each === mode)
    const found = files.get(path)
    if (!known || !found) continue
    const { size, mode: bits } = found
    current.set(path, { mode: known, oid, size, permissions: bits & 0o7777, identity: identityOf(found) })
  }
  return current
}

const NEW_FILE = 0o666

/** The previous permissions, with the executable bits of the mode: execution for everyone who may read. */
const permissionsFor = ({ mode }: FileState, before: number): number =>
  mode === "100755" ? before | ((before & 0o444) >> 2) : before & ~0o111

/** Writes a staged content under a temporary name and renames it: a reader sees the old content or the new one. */
export const writeFile = async (
  path: string,
  { state, staged, temporary, before }: { state: FileState; staged: string; temporary: string; before?: number },
): Promise<void> => {
  const content = join(staged, state.oid)
  await mkdir(dirname(path), { recursive: true })
  if (state.mode === "120000") await symlink(await readFile(content), temporary)
  else {
    const wanted = permissionsFor(state, before ?? NEW_FILE & ~process.umask())
    const file = await open(temporary, "wx", wanted)
    try {
      for await (const chunk of createReadStream(content)) await file.appendFile(chunk)
      await file.sync()
    } finally {
      await file.close()
    }
    await chmod(temporary, wanted)
  }
  await rename(temporary, path)
}

export const removeEmptyFoldersAbove = async (target: string, path: string): Promise<void> => {
  for (const folder of foldersAbove(path)) {
    const isGone = await rmdir(join(target, folder)).then(
      () => true,
      // It is not empty, or was never made.
      (error: unknown) => errorCode(error) === "ENOENT",
    )
    if (!isGone) return
  }
}

export const temporaryFor = (path: string, suffix: string): string => `${path}.baton-pass-${suffix}`

/** Place of the contents that are put back. */
const backupFolder = ({ store }: ApplyPlace): string => join(store, "previous")

/** The journal goes first: without one nothing is rolled back. */
export const dropJournal = async (place: ApplyPlace): Promise<void> => {
  await rm(place.journal, { force: true })
  await rm(backupFolder(place), { recursive: true, force: true })
}

const IN_THE_WAY = new Set(["ENOTEMPTY", "EEXIST", "ENOTDIR", "EISDIR"])

/**
 * Rolls back the writes of a journal, newest first, and drops it. A file that has neither its previous nor the pass's content was
 * changed by others and is left alone, and so is one whose previous content is damaged.
 *
 * @throws the file system's own error; the journal stays, so that it can be tried again
 */
export const rollBack = async (place: ApplyPlace, { entries, suffix }: Journal): Promise<Skipped[]> => {
  const { target } = place
  const leftAlone: Skipped[] = []
  const paths = entries.map(({ path }) => path)
  for (const path of paths) await rm(temporaryFor(join(target, path), suffix), { force: true })
  const current = await readCurrent(place, paths)
  const oids = entries.flatMap(({ before }) => before?.oid ?? [])
  const unsound = await stageAndCheck(place.git, place.store, backupFolder(place), oids)

  const rollBackOne = async ({ path, before, after }: JournalEntry): Promise<string | undefined> => {
    const found = current.get(path) ?? null
    // Where a file and a folder have changed places, what was written is rolled back before what was removed.
    const now = found !== null && "other" in found ? null : found
    const behindLink = findLinkAbove(target, path)
    if (behindLink !== undefined) return before === null && now === null ? undefined : behindLink
    if (before === null) {
      if (now !== null && !sameState(now, after)) return "somebody changed it while the pass was being applied"
      if (now !== null) await rm(join(target, path))
      // They may be made though the file is not there yet.
      await removeEmptyFoldersAbove(target, path)
      return undefined
    }
    if (sameState(now, before)) return undefined
    if (!sameState(now, after)) return "somebody changed it while the pass was being applied"
    if (unsound.has(before.oid)) return "its previous content is damaged"
    const whole = join(target, path)
    const temporary = temporaryFor(whole, suffix)
    try {
      await writeFile(whole, { state: before, staged: backupFolder(place), temporary, before: before.permissions })
      return undefined
    } catch (error) {
      await rm(temporary, { force: true })
      if (!IN_THE_WAY.has(errorCode(error) ?? "")) throw error
      return "somebody put something else in its place"
    }
  }

  for (const entry of [...entries].reverse()) {
    const reason = await rollBackOne(entry)
    if (reason !== undefined) leftAlone.push({ path: entry.path, reason })
  }
  await dropJournal(place)
  return leftAlone
}
