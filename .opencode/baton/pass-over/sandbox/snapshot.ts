/** Snapshots of folders as git trees: which files there are, their contents, and the changes between two of them. */
import { accessSync, chmodSync, constants, lstatSync, mkdirSync, type Stats, statfsSync } from "node:fs"
import { dirname, join } from "node:path"
import { setImmediate as nextTurn } from "node:timers/promises"
import { errorCode, isNotFound } from "../../host/log.ts"
import { flushFolder } from "../../host/state.ts"
import { type Git, parseList, renderList } from "./repository.ts"

/** Git's modes: a file, an executable file, a symbolic link. */
export const MODES = ["100644", "100755", "120000"] as const
type Mode = (typeof MODES)[number]

/** One state of a file; `oid` is the id of its content in git, `size` in bytes. */
export type FileState = { readonly mode: Mode; readonly oid: string; readonly size: number }

/** A file before and after, relative to the top folder; null for a missing side. */
export type Change = {
  readonly path: string
  /** Of a renamed file. */
  readonly previous_path: string | null
  readonly base: FileState | null
  readonly next: FileState | null
  readonly is_binary: boolean
  /** Of a symbolic link. */
  readonly link_target: string | null
  readonly by: "tool" | "shell"
}

/** Something that a pass cannot carry, reported rather than silently dropped. */
export type Skipped = { readonly path: string; readonly reason: string }

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
    if (isNotFound(error)) return undefined
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
export const createFolderCheck = (root: string): ((path: string) => boolean) => {
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
const SLICE_MS = 2

/** Looks at many items in slices, with pauses for the event loop before and between them. */
const forEachItem = async <T>(items: Iterable<T>, work: (item: T) => void): Promise<void> => {
  let over = 0
  for (const item of items) {
    if (performance.now() >= over) {
      await nextTurn()
      over = performance.now() + SLICE_MS
    }
    work(item)
  }
}

const REPOSITORY = ".git"
/** Characters that some file systems ignore in a name, and the names that they take for `.git`, as git refuses them. */
const IGNORED_CHARACTERS = /[\u200C-\u200F\u202A-\u202E\u206A-\u206F\uFEFF]/g
const REPOSITORY_NAME = /^(?:\.git|git~1)[ .]*(?:[:\\].*)?$/i

/** A path into a repository, in any spelling of `.git`. */
export const isInRepository = (path: string): boolean =>
  path.split("/").some((part) => REPOSITORY_NAME.test(part.replaceAll(IGNORED_CHARACTERS, "")))

/** Tells which paths no pass carries: repositories, and the bundle's own state, also as a file system without case finds it. */
export const isExcluded = (path: string): boolean =>
  isInRepository(path) || `/${path.toLowerCase()}`.includes("/.opencode/state/")

const OWN_REPOSITORY = "it is a git repository of its own"

const mayRead = (path: string): boolean => {
  try {
    accessSync(path, constants.R_OK)
    return true
  } catch (error) {
    if (errorCode(error) === "EACCES") return false
    throw error
  }
}

type Listed =
  | { readonly kind: "file"; readonly stats: Stats }
  | { readonly kind: "folder" | "gone" }
  | { readonly kind: "skipped"; readonly reason: string }

/** Classifies a path as git lists it: it ends the name of a nested repository with `/`. */
const createClassifier = (top: string): ((path: string) => Listed) => {
  const hasRealFolders = createFolderCheck(top)
  return (path) => {
    if (path.includes("\uFFFD")) return { kind: "skipped", reason: "its name is not UTF-8" }
    if (path.endsWith("/")) return { kind: "skipped", reason: OWN_REPOSITORY }
    // Git also lists a file that is deleted, or behind a link.
    const stats = hasRealFolders(path) ? statIfThere(join(top, path)) : undefined
    if (stats === undefined) return { kind: "gone" }
    if (stats.isDirectory()) return { kind: "folder" }
    const mode = modeOf(stats)
    if (mode === undefined) return { kind: "skipped", reason: "it is neither a file nor a link" }
    if (mode !== "120000" && !mayRead(join(top, path))) return { kind: "skipped", reason: "it may not be read" }
    return { kind: "file", stats }
  }
}

/** The files of a folder, as found before the snapshot of it is taken. */
export type ScannedTree = {
  readonly files: readonly string[]
  /** Folders of files, and of submodules, which stay empty. */
  readonly folders: ReadonlySet<string>
  /** Of files and folders that have others than this process gives to new ones. */
  readonly permissions: ReadonlyMap<string, number>
  readonly skipped: readonly Skipped[]
}

/** Largest tree of a sandbox, and of what a child may have changed; a larger one suggests a missing line in .gitignore. */
const MAX_TREE_BYTES = 2 * 1024 * 1024 * 1024

/** The share of a disk that passes leave free. */
const KEPT_SHARE = 0.05

/** Tells how many bytes may be written in a folder; it is asked anew before each writing. */
export type FreeSpace = (folder: string) => number

/** @returns Infinity where the system cannot tell */
export const freeSpaceOn: FreeSpace = (folder) => {
  try {
    const { bavail, blocks, bsize } = statfsSync(folder)
    return Math.max(0, (bavail - blocks * KEPT_SHARE) * bsize)
  } catch {
    return Number.POSITIVE_INFINITY
  }
}

/** Splits items by whether they fit into the free space, the small ones first. Both parts keep the order. */
export const splitByFreeSpace = <T>(
  items: readonly T[],
  sizeOf: (item: T) => number,
  freeSpace: number,
): { fit: readonly T[]; over: readonly T[] } => {
  let left = Math.min(freeSpace, MAX_TREE_BYTES)
  const over = new Set<T>()
  for (const item of items.toSorted((one, other) => sizeOf(one) - sizeOf(other))) {
    left -= sizeOf(item)
    if (left < 0) over.add(item)
  }
  return { fit: items.filter((item) => !over.has(item)), over: [...over] }
}

const MEGABYTE = 1024 * 1024

const describeOver = (bytes: number): string =>
  `its ${Math.ceil(bytes / MEGABYTE)} MB do not fit: a pass holds 2 GB at most and leaves a twentieth of the disk free`

/** Lists untracked files, without ignored ones. */
export const LIST = ["ls-files", "-z", "-o", "--exclude-standard"]

/** Looks at listed files. Other names are left out and named. @throws RangeError for a tree that is too large */
export const scanTree = async (top: string, paths: readonly string[], freeSpace: number): Promise<ScannedTree> => {
  const files: string[] = []
  const folders = new Set<string>()
  const permissions = new Map<string, number>()
  const skipped: Skipped[] = []
  const classify = createClassifier(top)
  const usual = 0o777 & ~process.umask()
  let total = 0
  const addFolder = (path: string): void => {
    if (path === "." || folders.has(path)) return
    addFolder(dirname(path))
    folders.add(path)
    const mode = (statIfThere(join(top, path))?.mode ?? usual) & 0o777
    // Its owner, the child, can work in it in any case.
    if (mode !== usual) permissions.set(path, mode | 0o700)
  }
  let last = ""
  await forEachItem(paths, (path) => {
    // In a conflict git lists a path for each side.
    if (path === last || isExcluded(path)) return
    last = path
    const found = classify(path)
    if (found.kind === "skipped") skipped.push({ path, reason: found.reason })
    if (found.kind === "folder" && statIfThere(join(top, path, REPOSITORY)) !== undefined) {
      skipped.push({ path, reason: "it is a submodule" })
      addFolder(path)
    }
    if (found.kind !== "file") return
    total += found.stats.size
    if (total > Math.min(freeSpace, MAX_TREE_BYTES))
      throw new RangeError(`the files that git does not ignore, up to ${path}: ${describeOver(total)}`)
    files.push(path)
    const mode = found.stats.mode & 0o777
    const isUsual = mode === ((mode & OWNER_MAY_EXECUTE) === 0 ? usual & 0o666 : usual)
    if (!isUsual && !found.stats.isSymbolicLink()) permissions.set(path, mode)
    addFolder(dirname(path))
  })
  return { files, folders, permissions, skipped }
}

const updateIndex = async (
  { git, top, gitFolder, index }: SnapshotPlace,
  options: readonly string[],
  paths: readonly string[],
  isDurable = false,
): Promise<void> => {
  if (paths.length === 0) return
  const stdin = renderList(paths)
  await git(["update-index", ...options, "-z", "--stdin"], { cwd: top, gitFolder, index, stdin, isDurable })
}

/** Puts files into the index as they are on the disk; those that are gone are taken out of it. */
export const addFiles = (place: SnapshotPlace, paths: readonly string[], { isDurable = false } = {}): Promise<void> =>
  updateIndex(place, ["--add", "--remove", "--replace"], paths, isDurable)

/** @returns the tree's id */
export const writeTree = async ({ git, top, gitFolder, index }: SnapshotPlace): Promise<string> =>
  (await git(["write-tree"], { cwd: top, gitFolder, index })).trim()

/** Writes the files of the index into the empty folder `place.top`; files and folders have the permissions that they had. */
export const checkOut = async (place: SnapshotPlace, tree: ScannedTree): Promise<void> => {
  const { git, top, gitFolder, index } = place
  await git(["checkout-index", "-a", "-u", "-f", "-q"], { cwd: top, gitFolder, index })
  for (const path of tree.folders) mkdirSync(join(top, path), { recursive: true })
  await forEachItem(tree.permissions, ([path, permissions]) => {
    // A file that went away before the snapshot is not here, and a link may stand in its place.
    if (statIfThere(join(top, path))?.isSymbolicLink() === false) chmodSync(join(top, path), permissions)
  })
}

/** A work result that exists only in its sandbox; the `.git` folder of a repository that the child made is none. */
export const hasUncarried = (skipped: readonly Skipped[]): boolean =>
  skipped.some(({ path }) => !path.endsWith(`/${REPOSITORY}`))

/**
 * Brings the index up to what the sandbox holds now. Ignored files count only if they were there at the beginning; of a
 * repository that the child made the files count, its history does not.
 *
 * @returns what cannot be carried
 */
const addChanges = async (place: SnapshotPlace & { freeSpace: FreeSpace }): Promise<Skipped[]> => {
  const { git, top, gitFolder, index, freeSpace } = place
  const present: { path: string; size: number }[] = []
  const gone: string[] = []
  const skipped: Skipped[] = []
  const classify = createClassifier(top)

  /** @param folder path of a nested repository, ending in `/`; empty for the sandbox itself */
  const sort = async (folder: string, names: readonly string[]): Promise<void> => {
    const nested: string[] = []
    await forEachItem(names, (name) => {
      const path = `${folder}${name}`
      if (isExcluded(path)) return
      const found = classify(path)
      if (found.kind === "file") present.push({ path, size: found.stats.size })
      else if (found.kind !== "skipped") gone.push(path)
      else if (found.reason === OWN_REPOSITORY) nested.push(path)
      else skipped.push({ path, reason: found.reason })
    })
    for (const path of nested) {
      skipped.push({ path: `${path}${REPOSITORY}`, reason: "its files are carried, its history is not" })
      const listed = await git(LIST, { cwd: join(top, path), gitFolder, index: `${index}.none` })
      await sort(path, parseList(listed))
    }
  }
  const listed = await git([...LIST, "-m"], { cwd: top, gitFolder, index })
  await sort("", parseList(listed))
  await updateIndex(place, ["--force-remove"], gone)
  const { fit, over } = splitByFreeSpace(present, ({ size }) => size, freeSpace(gitFolder))
  skipped.push(...over.map(({ path, size }) => ({ path, reason: describeOver(size) })))
  const fitting = fit.map(({ path }) => path)
  await addFiles(place, fitting, { isDurable: true })
  return skipped
}

type RawChange = Pick<Change, "path" | "previous_path" | "is_binary"> &
  Record<"base" | "next", Omit<FileState, "size"> | null>

/**
 * Parses `--raw --numstat -z`: of each change `:MODE MODE OID OID STATUS`, the path, and for a rename the new path; then of each, in
 * the same order, the number of its lines, which are `-` for a binary file.
 */
const parseChanges = (listed: string): RawChange[] => {
  const fields = listed.split("\0")
  const stateOf = (mode = "", oid = ""): RawChange["base"] => {
    const known = MODES.find((each) => each === mode)
    return known === undefined ? null : { mode: known, oid }
  }
  const changes: Omit<RawChange, "is_binary">[] = []
  while (fields[0]?.startsWith(":")) {
    const [before, after, one, other, status] = (fields.shift() ?? "").slice(1).split(" ")
    const previous_path = status?.startsWith("R") ? (fields.shift() ?? "") : null
    changes.push({ path: fields.shift() ?? "", previous_path, base: stateOf(before, one), next: stateOf(after, other) })
  }
  return changes.map((change) => {
    const lines = fields.shift() ?? ""
    // The paths of a rename follow.
    if (lines.endsWith("\t")) fields.splice(0, 2)
    return { ...change, is_binary: lines.startsWith("-") }
  })
}

/** Larger contents are named but not shown, and git need not compare their lines; they are applied like any other. */
const LARGE_FILE_BYTES = 256 * 1024
export const LARGE_AS_BINARY = ["-c", `core.bigFileThreshold=${LARGE_FILE_BYTES}`]
export const EXACT_RENAMES = ["-M100%", "--no-rename-empty"]

export const isLarge = ({ base, next }: Pick<Change, "base" | "next">): boolean =>
  [base, next].some((side) => side !== null && side.size > LARGE_FILE_BYTES)

/** The contents of changes, each once, a line each. */
const renderOids = (changes: readonly Pick<RawChange, "base" | "next">[]): string =>
  [...new Set(changes.flatMap(({ base, next }) => [base?.oid ?? [], next?.oid ?? []].flat()))]
    .map((oid) => `${oid}\n`)
    .join("")

/**
 * Collects the changes of a sandbox from the tree that it began with, and stores their contents, before and after, in a
 * repository that has no alternates. They are on the disk when this resolves.
 *
 * @param store folder of that repository
 * @throws when the sandbox cannot be read
 */
export const collectChanges = async (
  place: SnapshotPlace & { freeSpace: FreeSpace },
  { base, store, toolPaths }: { base: string; store: string; toolPaths: ReadonlySet<string> },
): Promise<{ files: Change[]; skipped: Skipped[] }> => {
  const { git, top, gitFolder, index, freeSpace } = place
  const skipped = await addChanges(place)
  const diff = [
    ...LARGE_AS_BINARY,
    "diff-index",
    "--cached",
    "--raw",
    "--numstat",
    "-z",
    "--no-abbrev",
    ...EXACT_RENAMES,
    base,
  ]
  const found = parseChanges(await git(diff, { cwd: top, gitFolder, index }))
  if (found.length === 0) return { files: [], skipped }
  const options = { cwd: top, gitFolder }
  const described = await git(["cat-file", "--batch-check"], { ...options, stdin: renderOids(found) })
  const sizes = new Map(described.split("\n").map((line) => [line.split(" ")[0], Number(line.split(" ")[2])]))
  const sized = (state: RawChange["base"]): FileState | null => state && { ...state, size: sizes.get(state.oid) ?? 0 }
  const changes = found.map((each): Change => {
    const by = toolPaths.has(each.path) ? "tool" : "shell"
    const change = { ...each, base: sized(each.base), next: sized(each.next), link_target: null, by } as const
    return { ...change, is_binary: each.is_binary && !isLarge(change) }
  })
  const sizeOf = (change: Change): number => (change.base?.size ?? 0) + (change.next?.size ?? 0)
  const { fit, over } = splitByFreeSpace(changes, sizeOf, freeSpace(store))
  skipped.push(...over.map((each) => ({ path: each.path, reason: describeOver(sizeOf(each)) })))
  if (fit.length === 0) return { files: [], skipped }
  const packs = join(store, "objects", "pack")
  const packed = { ...options, stdin: renderOids(fit), isDurable: true }
  await git(["pack-objects", "-q", "--window=0", join(packs, "pack")], packed)
  await flushFolder(packs)
  const files: Change[] = []
  for (const change of fit) {
    const { next } = change
    const link_target = next?.mode === "120000" ? await git(["cat-file", "blob", next.oid], options) : null
    files.push({ ...change, link_target })
  }
  return { files, skipped }
}
