import { constants } from "node:fs"
import { copyFile, mkdir, readlink, symlink, utimes } from "node:fs/promises"
import { dirname, join } from "node:path"
import { errorCode, isAbsent } from "../../host/error-code.ts"
import { createWayCheck, forEachItem, identityOf, modeOf, statIfThere } from "./disk.ts"
import type { ListedFile } from "./repository.ts"
import type { ManifestEntry } from "./stored.ts"
import type { LeftOut } from "./worktree.ts"

export type CopiedFile = Omit<ManifestEntry, "base"> & {
  readonly isIndexed: boolean
  readonly link: string | undefined
}

export type CopiedTree = { readonly files: readonly CopiedFile[]; readonly leftOut: readonly LeftOut[] }

/** A copy that would be larger is not made: somebody forgot a line in .gitignore. */
export const MAX_TREE_BYTES = 2 * 1024 * 1024 * 1024

/** Two writes within the coarsest resolution of a file system's times may leave the same time. */
const RACY_MS = 2_000
const COPY_ATTEMPTS = 3

/** @throws RangeError for a tree that is too large; the file system's own error when the copy cannot be written */
export const copyTree = async ({
  from,
  to,
  files,
  isExcluded,
}: {
  from: string
  to: string
  files: readonly ListedFile[]
  isExcluded: (path: string) => boolean
}): Promise<CopiedTree> => {
  const copied: CopiedFile[] = []
  const leftOut: LeftOut[] = []
  const isOnRealWay = createWayCheck(from)
  const madeFolders = new Map<string, Promise<unknown>>()
  let total = 0

  const makeFolder = (path: string): Promise<unknown> => {
    const folder = dirname(path)
    const made = madeFolders.get(folder) ?? mkdir(join(to, folder), { recursive: true })
    madeFolders.set(folder, made)
    return made
  }

  const copyContent = async (path: string): Promise<{ source: string; link: string | undefined }> => {
    const [source, target] = [join(from, path), join(to, path)]
    for (let attempt = 1; ; attempt += 1) {
      const before = await statIfThere(source)
      if (before === undefined) throw Object.assign(new Error(`${path} went away`), { code: "ENOENT" })
      if (before.isSymbolicLink()) {
        const link = await readlink(source)
        await symlink(link, target)
        return { source: identityOf(before), link }
      }
      await copyFile(source, target, constants.COPYFILE_FICLONE)
      await utimes(target, before.atime, before.mtime)
      const after = await statIfThere(source)
      const isWhole = after !== undefined && identityOf(after) === identityOf(before)
      if (isWhole) return { source: identityOf(before), link: undefined }
      // Whoever keeps writing to it gets a copy of some moment, whose base is then the copy and not the original.
      if (attempt === COPY_ATTEMPTS) return { source: "", link: undefined }
    }
  }

  const copyOne = async ({ path, isIndexed }: ListedFile): Promise<void> => {
    if (path.includes("\uFFFD")) return void leftOut.push({ path, reason: "its name is not UTF-8" })
    if (path.endsWith("/")) return void leftOut.push({ path, reason: "it is a git repository of its own" })
    // Git calls a file behind a link deleted, too.
    if (isExcluded(path) || !(await isOnRealWay(path))) return
    const found = await statIfThere(join(from, path))
    if (found === undefined) return
    if (found.isDirectory()) {
      await mkdir(join(to, path), { recursive: true })
      return void leftOut.push({ path, reason: "it is a submodule" })
    }
    const mode = modeOf(found)
    if (mode === undefined) return void leftOut.push({ path, reason: "it is neither a file nor a link" })
    total += found.size
    if (total > MAX_TREE_BYTES) throw new RangeError(`the files that git does not ignore have more than 2 GB (${path})`)
    await makeFolder(path)
    const { source, link } = await copyContent(path)
    const made = await statIfThere(join(to, path))
    if (made === undefined) throw new Error(`the copy of ${path} went away`)
    const isRacy = source === "" || Date.now() - found.mtimeMs < RACY_MS
    copied.push({ path, mode, isIndexed, copy: identityOf(made), source, is_racy: isRacy, link })
  }

  await forEachItem(files, async (file) => {
    try {
      await copyOne(file)
    } catch (error) {
      if (isAbsent(error)) return
      if (errorCode(error) !== "EACCES") throw error
      leftOut.push({ path: file.path, reason: "it may not be read" })
    }
  })
  return { files: copied, leftOut }
}
