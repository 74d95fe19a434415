/** The journal of writes into a project, and the way back. */
import { randomBytes } from "node:crypto"
import { createReadStream, type Stats } from "node:fs"
import { chmod, mkdir, open, readFile, rename, rm, rmdir, symlink } from "node:fs/promises"
import { dirname, join } from "node:path"
import { errorCode, isNotFound } from "../../host/log.ts"
import { stageContents } from "./contents.ts"
import { type Git, parseList, RefusalError } from "./repository.ts"
import { addFiles, createWayCheck, type LeftOut, MODES, modeOf, type Side, statIfThere } from "./snapshot.ts"

/** One write: the content before and after, and the temporary name it is written under. Paths are relative. */
export type JournalEntry = {
  readonly path: string
  readonly before: (Side & { permissions: number }) | null
  readonly after: Side | null
  readonly temporary: string
}

export type Journal = {
  readonly version: 1
  readonly entries: readonly JournalEntry[]
  readonly made_folders: readonly string[]
}

export type ApplyPlace = {
  readonly git: Git
  /** Folder that is written to. */
  readonly target: string
  /** Repository with the contents; those found in the target are stored there, too. */
  readonly store: string
  /** Path of the journal, which exists while files are written. */
  readonly journal: string
}

/** State of a path: missing, a file or link, or something that a pass never overwrites. */
export type Found = Side & { readonly permissions: number; readonly identity: string }
export type Current = Found | null | { readonly other: string }

/** A value that changes when the file is written, replaced or gets another mode, to the resolution of the file system. */
export const identityOf = ({ ino, size, mtimeMs, ctimeMs, mode }: Stats): string =>
  [ino, size, mtimeMs, ctimeMs, mode].join(":")

export const isSame = (one: Side | null, other: Side | null): boolean =>
  one === null || other === null ? one === other : one.oid === other.oid && one.mode === other.mode

/** Stores what stands at these paths now: the check for changes of others, and the way back. */
export const takeCurrent = async (
  { git, target, store }: ApplyPlace,
  paths: readonly string[],
  removed: ReadonlySet<string>,
): Promise<Map<string, Current>> => {
  const current = new Map<string, Current>()
  const isOnRealWay = createWayCheck(target)
  const files = new Map<string, Stats>()
  for (const path of paths) {
    current.set(path, null)
    const found = isOnRealWay(path) ? statIfThere(join(target, path)) : undefined
    if (!isOnRealWay(path)) {
      let other: string | undefined
      for (let folder = dirname(path); folder !== "."; folder = dirname(folder)) {
        const above = statIfThere(join(target, folder))
        if (above !== undefined && !above.isDirectory() && !removed.has(folder)) other = folder
      }
      if (other !== undefined) current.set(path, { other: `behind ${other}, which is no folder,` })
    } else if (found?.isDirectory()) {
      // A folder that this pass empties makes room for a file.
      if (![...removed].some((each) => each.startsWith(`${path}/`))) current.set(path, { other: "a folder" })
    } else if (found !== undefined) {
      if (modeOf(found) === undefined) current.set(path, { other: "neither a file nor a link" })
      else files.set(path, found)
    }
  }
  const index = join(store, "current.index")
  await rm(index, { force: true })
  await addFiles({ git, top: target, gitFolder: store, index }, [...files.keys()], { isDurable: true })
  const listed = files.size === 0 ? "" : await git(["ls-files", "-s", "-z"], { cwd: target, gitFolder: store, index })
  for (const field of parseList(listed)) {
    const [, mode, oid, path] = /^(\d+) (\w+) 0\t(.*)$/s.exec(field) ?? []
    const known = MODES.find((each) => each === mode)
    const found = path === undefined ? undefined : files.get(path)
    if (path === undefined || known === undefined || oid === undefined || found === undefined) continue
    current.set(path, {
      mode: known,
      oid,
      size: found.size,
      permissions: found.mode & 0o7777,
      identity: identityOf(found),
    })
  }
  return current
}

const EXECUTE = 0o111
const NEW_FILE = 0o666

/** The previous permissions, with the executable bits of the mode: execution for everyone who may read. */
const permissionsFor = ({ mode }: Side, before: number = NEW_FILE): number =>
  mode === "100755" ? before | ((before & 0o444) >> 2) : before & ~EXECUTE

/** Writes a staged content by a temporary file and a rename: a reader sees the old content or the new one. */
export const writeSide = async (
  path: string,
  { side, staged, temporary, before }: { side: Side; staged: string; temporary: string; before: number | undefined },
): Promise<void> => {
  const content = join(staged, side.oid)
  let isMade = false
  try {
    if (side.mode === "120000") {
      await symlink(await readFile(content), temporary)
      isMade = true
    } else {
      const wanted = permissionsFor(side, before)
      const file = await open(temporary, "wx", wanted)
      isMade = true
      try {
        for await (const chunk of createReadStream(content)) await file.appendFile(chunk)
        await file.sync()
      } finally {
        await file.close()
      }
      // An existing file's permissions do not depend on the process's umask.
      if (before !== undefined) await chmod(temporary, wanted)
    }
    await rename(temporary, path)
  } catch (error) {
    if (isMade) await rm(temporary, { force: true })
    throw error
  }
}

/** The missing folders above a path, and those that are not folders yet, outermost first. */
export const missingFoldersAbove = (root: string, path: string): string[] => {
  const missing: string[] = []
  for (let folder = dirname(path); folder !== "."; folder = dirname(folder)) {
    if (statIfThere(join(root, folder))?.isDirectory()) break
    missing.unshift(folder)
  }
  return missing
}

const STILL_USED = new Set(["ENOTEMPTY", "EEXIST", "EBUSY", "EPERM", "ENOTDIR", "EISDIR"])

/** @returns whether it is gone */
export const removeFolderIfEmpty = async (folder: string): Promise<boolean> => {
  try {
    await rmdir(folder)
    return true
  } catch (error) {
    if (isNotFound(error)) return true
    if (STILL_USED.has(errorCode(error) ?? "")) return false
    throw error
  }
}

/** Place of the contents that are put back. */
const previousFolder = ({ store }: ApplyPlace): string => join(store, "previous")

/** Drops the way back. The journal goes first: without one nothing is taken back. */
export const dropJournal = async (place: ApplyPlace): Promise<void> => {
  await rm(place.journal, { force: true })
  await rm(previousFolder(place), { recursive: true, force: true })
}

/** @returns false when one of the contents is damaged */
const isStaged = async (place: ApplyPlace, oids: readonly string[]): Promise<boolean> => {
  try {
    await stageContents(place.git, place.store, previousFolder(place), oids)
    return true
  } catch (error) {
    if (error instanceof RefusalError && error.refusal.code === "damaged") return false
    throw error
  }
}

/** @returns the reason why it could not be put back; undefined when it was */
const putBack = async (
  place: ApplyPlace,
  path: string,
  side: NonNullable<JournalEntry["before"]>,
): Promise<string | undefined> => {
  const whole = join(place.target, path)
  const temporary = join(place.target, temporaryFor(path))
  try {
    await mkdir(dirname(whole), { recursive: true })
    await writeSide(whole, { side, staged: previousFolder(place), temporary, before: side.permissions })
    return undefined
  } catch (error) {
    if (!STILL_USED.has(errorCode(error) ?? "")) throw error
    return "somebody put something else in its place"
  }
}

/**
 * Takes back the writes of a journal, newest first. A file that has neither its previous nor the pass's content was changed by
 * others and is left alone, and so is one whose previous content is damaged.
 *
 * @throws the file system's own error; the journal stays, so that it can be tried again
 */
export const takeBack = async (place: ApplyPlace, { entries, made_folders }: Journal): Promise<LeftOut[]> => {
  const { target } = place
  const leftAlone: LeftOut[] = []
  for (const { temporary } of entries) await rm(join(target, temporary), { force: true })
  const current = await takeCurrent(
    place,
    entries.map(({ path }) => path),
    new Set(),
  )
  const isWhole = await isStaged(
    place,
    entries.flatMap(({ before }) => before?.oid ?? []),
  )
  for (const { path, before, after } of [...entries].reverse()) {
    const now = current.get(path) ?? null
    // A file and a folder have changed places: what was written is taken back before what was removed.
    const isSwapped = now !== null && "other" in now
    const isBefore = !isSwapped && isSame(now, before)
    if (isBefore && before !== null) continue
    if (!isBefore && (isSwapped ? after !== null : !isSame(now, after))) {
      leftAlone.push({ path, reason: "somebody changed it while the pass was being applied" })
    } else if (before === null) {
      // Its folders may be made though it is not there yet.
      await rm(join(target, path), { force: true })
      for (const folder of made_folders.filter((each) => path.startsWith(`${each}/`)).reverse()) {
        await removeFolderIfEmpty(join(target, folder))
      }
    } else if (!isWhole && !(await isStaged(place, [before.oid]))) {
      leftAlone.push({ path, reason: "its previous content is damaged" })
    } else {
      const reason = await putBack(place, path, before)
      if (reason !== undefined) leftAlone.push({ path, reason })
    }
  }
  return leftAlone
}

const TEMPORARY = ".baton-pass"

/** Makes a name that no other file has, since a file of that name is removed after a crash. */
export const temporaryFor = (path: string): string => `${path}${TEMPORARY}-${randomBytes(8).toString("hex")}`

/** Checks a journal that was read: it may name no file but its own and the pass's. */
export const isTemporaryFor = (path: string, temporary: string): boolean =>
  temporary.startsWith(`${path}${TEMPORARY}-`) &&
  /^[0-9a-f]{16}$/.test(temporary.slice(path.length + TEMPORARY.length + 1))
