/** Snapshots of folders as git trees: which files there are, their contents, and the changes between two of them. */
import { accessSync, chmodSync, constants, lstatSync, mkdirSync, type Stats } from "node:fs"
import { open } from "node:fs/promises"
import { dirname, join } from "node:path"
import { errorCode, isNotFound } from "../../host/log.ts"
import { type Git, parseList, type Repository, renderList } from "./repository.ts"

/** Git's modes: a file, an executable file, a symbolic link. */
export const MODES = ["100644", "100755", "120000"] as const
type Mode = (typeof MODES)[number]

/** One state of a file; `oid` is the id of its content in git, `size` in bytes. */
export type Side = { readonly mode: Mode; readonly oid: string; readonly size: number }

/** Something that a pass cannot carry, reported rather than silently dropped. */
export type LeftOut = { readonly path: string; readonly reason: string }

/** A file before and after, relative to the top folder; null for a missing side. `previous_path`: of a renamed file. */
export type Change = {
  readonly path: string
  readonly previous_path: string | null
  readonly base: Side | null
  readonly next: Side | null
  readonly by: "tool" | "shell"
}

/** A folder's files, their repository for snapshots, and the index in it. Absolute paths. */
type SnapshotPlace = {
  readonly git: Git
  readonly top: string
  readonly gitFolder: string
  readonly index: string
}

export const statIfThere = (path: string): Stats | undefined => {
  try {
    return lstatSync(path)
  } catch (error) {
    if (isNotFound(error) || errorCode(error) === "ENOTDIR") return undefined
    throw error
  }
}

const OWNER_MAY_EXECUTE = 0o100

/** @returns undefined for anything but a file or a link */
export const modeOf = (found: Stats): Mode | undefined => {
  if (found.isSymbolicLink()) return "120000"
  if (!found.isFile()) return undefined
  return (found.mode & OWNER_MAY_EXECUTE) === 0 ? "100644" : "100755"
}

/**
 * Returns a function that tells whether all folders of a relative path are real ones: neither git nor a pass counts files behind
 * a link as the project's. Its results per folder are cached.
 */
export const createWayCheck = (root: string): ((path: string) => boolean) => {
  const known = new Map<string, boolean>([[".", true]])
  const check = (folder: string): boolean => {
    const before = known.get(folder)
    if (before !== undefined) return before
    const isReal = check(dirname(folder)) && (statIfThere(join(root, folder))?.isDirectory() ?? false)
    known.set(folder, isReal)
    return isReal
  }
  return (path) => check(dirname(path))
}

/** Longest time that OpenCode's event loop is blocked. */
const SLICE_MS = 4

/** Looks at many items in slices, with pauses for the event loop. */
const forEachItem = async <T>(items: readonly T[], work: (item: T) => void): Promise<void> => {
  let over = performance.now() + SLICE_MS
  for (const item of items) {
    work(item)
    if (performance.now() < over) continue
    await new Promise((done) => setImmediate(done))
    over = performance.now() + SLICE_MS
  }
}

const REPOSITORY = ".git"
/** Characters that some file systems ignore in a name, and the names that they take for `.git`, as git refuses them. */
const IGNORED_CHARACTERS = /[\u200C-\u200F\u202A-\u202E\u206A-\u206F\uFEFF]/g
const REPOSITORY_NAME = /^(?:\.git|git~1)[ .]*(?:[:\\].*)?$/i

/** Tells which paths no pass carries: the bundle's own state, and `.git` in each spelling. @param ownFolder relative */
export const excluderFor =
  (ownFolder: string) =>
  (path: string): boolean =>
    path.startsWith(`${ownFolder}/`) ||
    path.split("/").some((part) => REPOSITORY_NAME.test(part.replaceAll(IGNORED_CHARACTERS, "")))

const UNREADABLE = "it may not be read"
const NOT_A_FILE = "it is neither a file nor a link"
const OWN_REPOSITORY = "it is a git repository of its own"
/** The reason why a listed name cannot be carried; git ends the name of a nested repository with `/`. */
const uncarriedName = (path: string): string | undefined => {
  if (path.includes("\uFFFD")) return "its name is not UTF-8"
  return path.endsWith("/") ? OWN_REPOSITORY : undefined
}

const mayRead = (path: string): boolean => {
  try {
    accessSync(path, constants.R_OK)
    return true
  } catch (error) {
    if (errorCode(error) === "EACCES") return false
    throw error
  }
}

/** The files of a folder, as found before the snapshot of it is taken. */
export type SeenTree = {
  readonly files: readonly { readonly path: string; readonly permissions: number; readonly isLink: boolean }[]
  /** Of submodules, which stay empty. */
  readonly folders: readonly string[]
  readonly leftOut: readonly LeftOut[]
}

/** Largest tree of a sandbox; a larger one suggests a missing line in .gitignore. */
const MAX_TREE_BYTES = 2 * 1024 * 1024 * 1024

const LIST = ["ls-files", "-z", "-o", "--exclude-standard"]

/**
 * Lists a folder's files, without ignored ones: of a repository all that are tracked or untracked.
 *
 * @param lister an empty repository, which lists a folder outside a repository by its .gitignore files
 */
export const listFiles = async (
  git: Git,
  {
    top,
    repository,
    excludesFile,
    lister,
  }: { top: string; repository: Repository | undefined; excludesFile: string; lister: string },
): Promise<string[]> => {
  const settings = ["-c", `core.excludesFile=${excludesFile}`]
  const { gitFolder } = repository ?? { gitFolder: lister }
  const listed = await git([...settings, ...LIST, ...(repository ? ["-c"] : [])], { cwd: top, gitFolder })
  return [...new Set(parseList(listed))]
}

/** Looks at listed files. Other names are left out and named. @throws RangeError for a tree that is too large */
export const lookAtTree = async (
  top: string,
  paths: readonly string[],
  isExcluded: (path: string) => boolean,
): Promise<SeenTree> => {
  const files: SeenTree["files"][number][] = []
  const folders: string[] = []
  const leftOut: LeftOut[] = []
  const isOnRealWay = createWayCheck(top)
  let total = 0
  await forEachItem(paths, (path) => {
    const reason = uncarriedName(path)
    if (reason !== undefined) leftOut.push({ path, reason })
    // Git also lists a file that is deleted, or behind a link.
    const found =
      reason !== undefined || isExcluded(path) || !isOnRealWay(path) ? undefined : statIfThere(join(top, path))
    if (found === undefined) return
    if (found.isDirectory()) {
      if (statIfThere(join(top, path, REPOSITORY)) === undefined) return
      leftOut.push({ path, reason: "it is a submodule" })
      folders.push(path)
      return
    }
    const mode = modeOf(found)
    if (mode === undefined) leftOut.push({ path, reason: NOT_A_FILE })
    else if (mode !== "120000" && !mayRead(join(top, path))) leftOut.push({ path, reason: UNREADABLE })
    else {
      total += found.size
      if (total > MAX_TREE_BYTES)
        throw new RangeError(`the files that git does not ignore have more than 2 GB (${path})`)
      files.push({ path, permissions: found.mode & 0o777, isLink: mode === "120000" })
    }
  })
  return { files, folders, leftOut }
}

/** Puts files into the index as they are on the disk; those that are gone are taken out of it. */
export const addFiles = async (
  { git, top, gitFolder, index }: SnapshotPlace,
  paths: readonly string[],
  { isDurable = false } = {},
): Promise<void> => {
  if (paths.length === 0) return
  const args = ["update-index", "--add", "--remove", "--replace", "-z", "--stdin"]
  await git(args, { cwd: top, gitFolder, index, stdin: renderList(paths), isDurable })
}

const removeFiles = async ({ git, top, gitFolder, index }: SnapshotPlace, paths: readonly string[]): Promise<void> => {
  if (paths.length === 0) return
  await git(["update-index", "--force-remove", "-z", "--stdin"], {
    cwd: top,
    gitFolder,
    index,
    stdin: renderList(paths),
  })
}

/** @returns the tree's id */
export const writeTree = async ({ git, top, gitFolder, index }: SnapshotPlace): Promise<string> =>
  (await git(["write-tree"], { cwd: top, gitFolder, index })).trim()

/** Writes the files of the index into the empty folder `place.top`, with the permissions that they had. */
export const checkOut = async (place: SnapshotPlace, tree: SeenTree): Promise<void> => {
  const { git, top, gitFolder, index } = place
  await git(["checkout-index", "-a", "-u", "-f", "-q"], { cwd: top, gitFolder, index })
  const given = 0o777 & ~process.umask()
  await forEachItem(tree.files, ({ path, permissions, isLink }) => {
    const isGiven = permissions === ((permissions & OWNER_MAY_EXECUTE) === 0 ? given & 0o666 : given)
    // A file that went away before the snapshot is not here.
    if (!isLink && !isGiven && statIfThere(join(top, path))?.isFile()) chmodSync(join(top, path), permissions)
  })
  for (const folder of tree.folders) mkdirSync(join(top, folder), { recursive: true })
}

/** Tells whether a work result exists only in its sandbox; the `.git` folder of a repository that the child made is none. */
export const hasUncarried = (leftOut: readonly LeftOut[]): boolean =>
  leftOut.some(({ path }) => !path.endsWith(`/${REPOSITORY}`))

/**
 * Brings the index up to what the sandbox holds now. Ignored files count only if they were there at the beginning; of a
 * repository that the child made the files count, its history does not.
 *
 * @returns what cannot be carried
 */
const addChanges = async (place: SnapshotPlace, isExcluded: (path: string) => boolean): Promise<LeftOut[]> => {
  const { git, top, gitFolder, index } = place
  const present: string[] = []
  const gone: string[] = []
  const leftOut: LeftOut[] = []
  const isOnRealWay = createWayCheck(top)

  /** @param way path of a nested repository, ending in `/`; empty for the sandbox itself */
  const look = async (way: string, paths: readonly string[]): Promise<void> => {
    const nested: string[] = []
    await forEachItem(paths, (name) => {
      const path = `${way}${name}`
      if (isExcluded(path)) return
      const found = isOnRealWay(path) ? statIfThere(join(top, path)) : undefined
      const reason = uncarriedName(path)
      if (reason === OWN_REPOSITORY) nested.push(path)
      else if (reason !== undefined) leftOut.push({ path, reason })
      else if (found === undefined || found.isDirectory()) gone.push(path)
      else if (modeOf(found) === undefined) leftOut.push({ path, reason: NOT_A_FILE })
      else if (!found.isSymbolicLink() && !mayRead(join(top, path))) leftOut.push({ path, reason: UNREADABLE })
      else present.push(path)
    })
    for (const path of nested) {
      leftOut.push({ path: `${path}${REPOSITORY}`, reason: "its files are carried, its history is not" })
      const listed = await git(LIST, { cwd: join(top, path), gitFolder, index: `${index}.none` })
      await look(path, parseList(listed))
    }
  }
  const listed = await git([...LIST, "-m"], { cwd: top, gitFolder, index })
  await look("", [...new Set(parseList(listed))])
  await removeFiles(place, gone)
  await addFiles(place, present, { isDurable: true })
  return leftOut
}

/** Parses `--raw -z`: `:MODE MODE OID OID STATUS`, the path, and for a rename the new path. */
const parseChanges = (raw: string) => {
  const fields = raw.split("\0")
  const changes: {
    path: string
    previous: string | null
    base: Omit<Side, "size"> | null
    next: Omit<Side, "size"> | null
  }[] = []
  const sideOf = (mode = "", oid = ""): Omit<Side, "size"> | null => {
    const known = MODES.find((each) => each === mode)
    return known === undefined ? null : { mode: known, oid }
  }
  for (let at = 0; at + 1 < fields.length; ) {
    const [before = "", after = "", one = "", other = "", status = ""] = (fields[at] ?? "").slice(1).split(" ")
    const isRename = status.startsWith("R")
    const first = fields[at + 1] ?? ""
    const path = isRename ? (fields[at + 2] ?? "") : first
    changes.push({ path, previous: isRename ? first : null, base: sideOf(before, one), next: sideOf(after, other) })
    at += isRename ? 3 : 2
  }
  return changes
}

const flushFolder = async (folder: string): Promise<void> => {
  const handle = await open(folder, "r")
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

/**
 * Collects the changes of a sandbox from the tree that it began with, and stores their contents, before and after, in a
 * repository that borrows from no other. They are on the disk when this resolves.
 *
 * @param store folder of that repository
 * @throws when the sandbox cannot be read
 */
export const collectChanges = async (
  place: SnapshotPlace,
  {
    base,
    store,
    isExcluded,
    toolPaths,
  }: { base: string; store: string; isExcluded: (path: string) => boolean; toolPaths: ReadonlySet<string> },
): Promise<{ files: Change[]; leftOut: LeftOut[] }> => {
  const { git, top, gitFolder, index } = place
  const leftOut = await addChanges(place, isExcluded)
  const diff = ["diff-index", "--cached", "--raw", "-z", "--no-abbrev", "-M100%", "--no-rename-empty", base]
  const found = parseChanges(await git(diff, { cwd: top, gitFolder, index }))
  const sides = found.flatMap((each) => [each.base, each.next]).filter((side) => side !== null)
  const oids = [...new Set(sides.map(({ oid }) => oid))]
  if (oids.length === 0) return { files: [], leftOut }
  const lines = `${oids.join("\n")}\n`
  const packs = join(store, "objects", "pack")
  const options = { cwd: top, gitFolder, stdin: lines }
  const [described] = await Promise.all([
    git(["cat-file", "--batch-check"], options),
    git(["pack-objects", "-q", "--window=0", join(packs, "pack")], { ...options, isDurable: true }),
  ])
  await flushFolder(packs)
  const sizes = new Map(
    described.split("\n").map((line) => {
      const [oid = "", type = "", size = ""] = line.split(" ")
      return [oid, type === "blob" ? Number(size) : undefined]
    }),
  )
  const sized = (side: Omit<Side, "size"> | null): Side | null => {
    if (side === null) return null
    const size = sizes.get(side.oid)
    if (size === undefined) throw new Error(`the content ${side.oid} was not stored`)
    return { ...side, size }
  }
  const files = found.map(
    ({ path, previous, ...each }): Change => ({
      path,
      previous_path: previous,
      base: sized(each.base),
      next: sized(each.next),
      by: toolPaths.has(path) ? "tool" : "shell",
    }),
  )
  return { files, leftOut }
}
