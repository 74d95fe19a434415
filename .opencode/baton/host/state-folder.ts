import { randomBytes } from "node:crypto"
import { existsSync } from "node:fs"
import { mkdir, open, rename, rm, stat, writeFile } from "node:fs/promises"
import { dirname, join, relative } from "node:path"

const OPENCODE_FOLDER = ".opencode"

/** Everything the bundle writes at run time lies here, ignored by git. */
export type StateFolder = {
  /** Absolute path of the folder. */
  readonly root: string
  /** Absolute path of something inside it; creates nothing. */
  path(...segments: string[]): string
  /** Writes by unique temporary file, fsync and rename: a reader sees the old text or the new one, never a half. */
  write(path: string, text: string): Promise<void>
}

/** The project an OpenCode directory belongs to: its nearest ancestor (up to the worktree) that has `.opencode`. */
export const findProjectRoot = (directory: string, worktree: string): string => {
  let current = directory
  for (;;) {
    if (existsSync(join(current, OPENCODE_FOLDER))) return current
    const parent = dirname(current)
    const outside = relative(worktree, current) === "" || parent === current || worktree === "/"
    if (outside) return directory
    current = parent
  }
}

/**
 * @param projectRoot absolute path of the folder that holds `.opencode`
 * @throws nothing here; `write` rejects with the file system's own error (EACCES, EROFS, ENOSPC, …)
 */
export const createStateFolder = (projectRoot: string): StateFolder => {
  const root = join(projectRoot, OPENCODE_FOLDER, "state")
  const ensure = async (folder: string): Promise<void> => {
    await mkdir(folder, { recursive: true })
    const ignore = join(root, ".gitignore")
    const known = await stat(ignore).then(
      () => true,
      () => false,
    )
    if (!known) await writeFile(ignore, "*\n")
  }
  return {
    root,
    path: (...segments) => join(root, ...segments),
    write: async (path, text) => {
      const temporary = `${path}.${process.pid}-${randomBytes(4).toString("hex")}.tmp`
      await ensure(dirname(path))
      try {
        const file = await open(temporary, "wx")
        try {
          await file.writeFile(text)
          await file.sync()
        } finally {
          await file.close()
        }
        await rename(temporary, path)
      } catch (error) {
        await rm(temporary, { force: true })
        throw error
      }
    },
  }
}
