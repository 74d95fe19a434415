/** What is on the disk at a path, without following links: a link is content like any other here, never a way. */
import { createHash } from "node:crypto"
import { createReadStream, type Stats } from "node:fs"
import { lstat, readlink } from "node:fs/promises"
import { dirname, join } from "node:path"
import { pipeline } from "node:stream/promises"
import { isAbsent } from "../../host/error-code.ts"
import type { Mode, Side } from "./stored.ts"

export const statIfThere = async (path: string): Promise<Stats | undefined> => {
  try {
    return await lstat(path)
  } catch (error) {
    if (isAbsent(error)) return undefined
    throw error
  }
}

/** Equal as long as nobody wrote to the file, replaced it or changed its mode, to the file system's resolution of time. */
export const identityOf = ({ ino, size, mtimeMs, ctimeMs, mode }: Stats): string =>
  [ino, size, mtimeMs, ctimeMs, mode].join(":")

const OWNER_MAY_EXECUTE = 0o100

/** @returns undefined for what is neither a file nor a link */
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
 * Tells of a relative path whether every folder on its way is a real one: behind a link lies another place, which neither
 * git nor a pass counts as the worktree's.
 */
export const createWayCheck = (root: string): ((path: string) => Promise<boolean>) => {
  const known = new Map<string, Promise<boolean>>()
  const isReal = async (folder: string): Promise<boolean> => {
    if (folder === ".") return true
    if (!(await check(dirname(folder)))) return false
    return (await statIfThere(join(root, folder)))?.isDirectory() ?? false
  }
  const check = (folder: string): Promise<boolean> => {
    const found = known.get(folder) ?? isReal(folder)
    known.set(folder, found)
    return found
  }
  return (path) => check(dirname(path))
}

const PARALLEL = 16

/** Does something with each item, a few at a time: a copy of many files must not hold up everybody else's. */
export const forEachItem = async <T>(items: readonly T[], work: (item: T, index: number) => Promise<void>) => {
  let next = 0
  const worker = async (): Promise<void> => {
    while (next < items.length) {
      const index = next++
      await work(items[index] as T, index)
    }
  }
  await Promise.all(Array.from({ length: Math.min(PARALLEL, items.length) }, worker))
}
