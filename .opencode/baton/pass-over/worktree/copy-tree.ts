import { accessSync, constants, mkdirSync, readlinkSync, type Stats, symlinkSync, utimesSync } from "node:fs"
import { dirname, join } from "node:path"
import { errorCode, isNotFound } from "../../host/log.ts"
import { copyContent, createWayCheck, forEachItem, identityOf, modeOf, statIfThere } from "./disk.ts"
import type { ListedFile } from "./repository.ts"
import type { ManifestEntry, Mode } from "./stored.ts"
import type { LeftOut } from "./worktree.ts"

type CopiedFile = Omit<ManifestEntry, "base"> & {
  readonly isIndexed: boolean
  readonly size: number
  /** Target of a link. */
  readonly link: string | undefined
}

type CopiedTree = { readonly files: readonly CopiedFile[]; readonly leftOut: readonly LeftOut[] }

/** Largest tree that is copied; a larger one suggests a missing line in .gitignore. */
const MAX_TREE_BYTES = 2 * 1024 * 1024 * 1024

/** Two writes within the coarsest time resolution of a file system may leave the same time. */
const RACY_MS = 2_000
/** The reason why a pass cannot carry a path as listed by git; undefined for all others. */
export const uncarriedReason = (path: string): string | undefined => {
  if (path.includes("\uFFFD")) return "its name is not UTF-8"
  return path.endsWith("/") ? "it is a git repository of its own" : undefined
}

const UNREADABLE = "it may not be read"

/** The contents of a copy, listed before it is made. */
export type SeenTree = {
  readonly files: readonly ListedFile[]
  /** Of submodules, which stay empty. */
  readonly folders: readonly string[]
  readonly leftOut: readonly LeftOut[]
}

/** @throws RangeError for a tree that is too large */
export const lookAtTree = async ({
  from,
  files,
  isExcluded,
}: {
  from: string
  files: readonly ListedFile[]
  isExcluded: (path: string) => boolean
}): Promise<SeenTree> => {
  const seen: ListedFile[] = []
  const folders: string[] = []
  const leftOut: LeftOut[] = []
  const isOnRealWay = createWayCheck(from)
  let total = 0

  const look = (file: ListedFile): void => {
    const { path } = file
    const reason = uncarriedReason(path)
    if (reason !== undefined) {
      leftOut.push({ path, reason })
      return
    }
    // Git also reports a file behind a link as deleted.
    const found = isExcluded(path) || !isOnRealWay(path) ? undefined : statIfThere(join(from, path))
    if (found === undefined) return
    const mode = modeOf(found)
    if (mode === undefined) {
      leftOut.push({ path, reason: found.isDirectory() ? "it is a submodule" : "it is neither a file nor a link" })
      if (found.isDirectory()) folders.push(path)
      return
    }
    total += found.size
    if (total > MAX_TREE_BYTES) throw new RangeError(`the files that git does not ignore have more than 2 GB (${path})`)
    if (mode !== "120000") accessSync(join(from, path), constants.R_OK)
    seen.push(file)
  }

  await forEachItem(files, (file) => {
    try {
      look(file)
    } catch (error) {
      if (errorCode(error) === "EACCES") leftOut.push({ path: file.path, reason: UNREADABLE })
      else if (!isNotFound(error)) throw error
    }
    return undefined
  })
  return { files: seen, folders, leftOut }
}

/**
 * @param tree as listed; files deleted since then are not in the copy
 * @throws the reason of `signal`; the file system's own error when the copy cannot be written
 */
export const copyTree = async ({
  from,
  to,
  tree,
  signal,
}: {
  from: string
  to: string
  tree: SeenTree
  signal: AbortSignal
}): Promise<CopiedTree> => {
  const copied: CopiedFile[] = []
  const leftOut: LeftOut[] = []
  const isOnRealWay = createWayCheck(from)
  const madeFolders = new Set<string>()

  const makeFolder = (path: string): void => {
    const folder = dirname(path)
    if (madeFolders.has(folder)) return
    mkdirSync(join(to, folder), { recursive: true })
    madeFolders.add(folder)
  }

  const add = (file: ListedFile, before: Stats, mode: Mode, { isWhole, link }: { isWhole: boolean; link?: string }) => {
    const made = statIfThere(join(to, file.path))
    if (made === undefined) throw new Error(`the copy of ${file.path} went away`)
    const isRacy = !isWhole || Date.now() - before.mtimeMs < RACY_MS
    copied.push({
      ...file,
      mode,
      size: made.size,
      copy: identityOf(made),
      source: identityOf(before),
      is_racy: isRacy,
      link,
    })
  }

  /** If the original keeps changing, the copy has one state of it, and the copy is the base instead of the original. */
  const finish = (file: ListedFile, before: Stats, mode: Mode): void => {
    utimesSync(join(to, file.path), before.atime, before.mtime)
    const after = statIfThere(join(from, file.path))
    add(file, before, mode, { isWhole: after !== undefined && identityOf(after) === identityOf(before) })
  }

  const copyOne = (file: ListedFile): Promise<void> | undefined => {
    const { path } = file
    const [source, target] = [join(from, path), join(to, path)]
    const found = isOnRealWay(path) ? statIfThere(source) : undefined
    const mode = found && modeOf(found)
    if (found === undefined || mode === undefined) return undefined
    makeFolder(path)
    if (mode === "120000") {
      const link = readlinkSync(source)
      symlinkSync(link, target)
      add(file, found, mode, { isWhole: true, link })
      return undefined
    }
    const lasting = copyContent(source, target, found.size)
    if (lasting !== undefined) return lasting.then(() => finish(file, found, mode))
    finish(file, found, mode)
    return undefined
  }

  const leave = (path: string, error: unknown): void => {
    if (isNotFound(error)) return
    if (errorCode(error) !== "EACCES") throw error
    leftOut.push({ path, reason: UNREADABLE })
  }

  for (const folder of tree.folders) mkdirSync(join(to, folder), { recursive: true })
  await forEachItem(tree.files, (file) => {
    signal.throwIfAborted()
    const { path } = file
    try {
      return copyOne(file)?.catch((error: unknown) => leave(path, error))
    } catch (error) {
      leave(path, error)
      return undefined
    }
  })
  return { files: copied, leftOut }
}
