/** Reads the disk without following links: a link is content here, never a path to other files. */
import { createHash } from "node:crypto"
import { constants, copyFileSync, createReadStream, lstatSync, type Stats } from "node:fs"
import { copyFile, readlink } from "node:fs/promises"
import { dirname, join } from "node:path"
import { pipeline } from "node:stream/promises"
import { isNotFound } from "../../host/log.ts"
import type { Mode, Side } from "./stored.ts"

export const statIfThere = (path: string): Stats | undefined => {
  try {
    return lstatSync(path)
  } catch (error) {
    if (isNotFound(error)) return undefined
    throw error
  }
}

/** A value that changes when the file is written, replaced or gets another mode, to the resolution of the file system. */
export const identityOf = ({ ino, size, mtimeMs, ctimeMs, mode }: Stats): string =>
  [ino, size, mtimeMs, ctimeMs, mode].join(":")

const OWNER_MAY_EXECUTE = 0o100

/** @returns undefined for anything but a file or a link */
export const modeOf = (found: Stats): Mode | undefined => {
  if (found.isSymbolicLink()) return "120000"
  if (!found.isFile()) return undefined
  return (found.mode & OWNER_MAY_EXECUTE) === 0 ? "100644" : "100755"
}

export const hashFile = async (path: string): Promise<string> => {
  const hash = createHash("sha256")
  await pipeline(createReadStream(path), hash)
  return hash.digest("hex")
}

export const hashText = (text: string | Uint8Array): string => createHash("sha256").update(text).digest("hex")

/**
 * @param found the path's own stats
 * @throws the file system's own error
 */
export const readSide = async (path: string, found: Stats): Promise<Side | undefined> => {
  const mode = modeOf(found)
  if (mode === undefined) return undefined
  if (mode !== "120000") return { mode, hash: await hashFile(path), size: found.size }
  const target = await readlink(path)
  return { mode, hash: hashText(target), size: Buffer.byteLength(target) }
}

export const isSameSide = (one: Side | null, other: Side | null): boolean =>
  one === null || other === null ? one === other : one.hash === other.hash && one.mode === other.mode

/**
 * Returns a function that tells whether all folders of a relative path are real ones: neither git nor a pass counts files behind
 * a link as the worktree's. Its results per folder are cached.
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

/** Larger files are copied asynchronously, so that the event loop is not blocked. */
const SMALL_BYTES = 256 * 1024

/** Copies a file's content, sharing blocks where the file system can. @returns a promise for large files only */
export const copyContent = (from: string, to: string, size: number): Promise<void> | undefined => {
  if (size > SMALL_BYTES) return copyFile(from, to, constants.COPYFILE_FICLONE)
  copyFileSync(from, to, constants.COPYFILE_FICLONE)
  return undefined
}

/** Longest time that OpenCode's event loop is blocked; one small file takes about 20 µs. */
const SLICE_MS = 4

/**
 * Processes items in slices, with pauses for the event loop. For thousands of small files this is many times faster than a
 * promise for each, above all on a busy machine.
 *
 * @param work may return a promise for an item that takes long
 */
export const forEachItem = async <T>(
  items: readonly T[],
  work: (item: T, index: number) => Promise<void> | undefined,
): Promise<void> => {
  let over = performance.now() + SLICE_MS
  for (const [index, item] of items.entries()) {
    const lasting = work(item, index)
    if (lasting !== undefined) await lasting
    if (performance.now() < over) continue
    await new Promise((resolve) => setImmediate(resolve))
    over = performance.now() + SLICE_MS
  }
}
