import { randomBytes } from "node:crypto"
import { mkdir, open, rename, rm, stat, writeFile } from "node:fs/promises"
import { dirname, join } from "node:path"

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
