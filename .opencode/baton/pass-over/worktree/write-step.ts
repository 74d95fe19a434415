import { createReadStream } from "node:fs"
import { chmod, open, rename, rm, rmdir, symlink } from "node:fs/promises"
import { dirname, join } from "node:path"
import { errorCode, isNotFound } from "../../host/log.ts"
import { readContent } from "./contents.ts"
import { statIfThere } from "./disk.ts"
import type { Side } from "./stored.ts"

const NEW_FILE = 0o666
const EXECUTE = 0o111

/** Returns the permissions of a written file: the previous ones, with the executable bits of the mode. */
const permissionsFor = (side: Side, before: number | undefined): number => {
  const permissions = before ?? NEW_FILE
  if (side.mode !== "100755") return permissions & ~EXECUTE
  // Execution for everyone who may read.
  return permissions | ((permissions & 0o444) >> 2)
}

/**
 * Writes a stored content to a path of the worktree, by a temporary file beside it and a rename: a reader sees the old content or
 * the new one.
 *
 * @param permissions of the previous file; a new one gets the process's default
 * @throws the file system's own error; the path is unchanged then
 */
export const writeSide = async ({
  path,
  side,
  held,
  temporary,
  permissions,
}: {
  path: string
  side: Side
  held: string
  temporary: string
  permissions: number | undefined
}): Promise<void> => {
  try {
    if (side.mode === "120000") await symlink((await readContent(held, side)).toString(), temporary)
    else {
      const wanted = permissionsFor(side, permissions)
      const file = await open(temporary, "wx", wanted)
      try {
        for await (const chunk of createReadStream(join(held, side.hash))) await file.appendFile(chunk)
        await file.sync()
      } finally {
        await file.close()
      }
      // An existing file's permissions do not depend on the process's umask.
      if (permissions !== undefined) await chmod(temporary, wanted)
    }
    await rename(temporary, path)
  } catch (error) {
    await rm(temporary, { force: true })
    throw error
  }
}

/** Returns the missing folders above a path, and those that are not folders yet, outermost first. */
export const missingFoldersAbove = async (root: string, path: string): Promise<string[]> => {
  const missing: string[] = []
  for (let folder = dirname(path); folder !== "."; folder = dirname(folder)) {
    if (statIfThere(join(root, folder))?.isDirectory()) break
    missing.unshift(folder)
  }
  return missing
}

const STILL_USED = new Set(["ENOTEMPTY", "EEXIST", "EBUSY", "EPERM"])

/** Removes empty folders from a path's own upwards, as git does; never the root. */
export const removeEmptyFoldersAbove = async (root: string, path: string): Promise<void> => {
  for (let folder = dirname(path); folder !== "."; folder = dirname(folder)) {
    try {
      await rmdir(join(root, folder))
    } catch (error) {
      if (STILL_USED.has(errorCode(error) ?? "")) return
      if (!isNotFound(error)) throw error
    }
  }
}
