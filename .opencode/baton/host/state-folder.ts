import { randomBytes } from "node:crypto"
import { mkdir, open, readdir, rename, rm, stat, writeFile } from "node:fs/promises"
import { dirname, join } from "node:path"

const OPENCODE_FOLDER = ".opencode"

const TEMPORARY = ".tmp"
/** No write takes this long, so that a temporary file of this age is one whose process was killed. */
const ABANDONED_MS = 10 * 60_000

/** Removes what killed processes left half-written in a folder. What cannot be removed stays. */
const sweep = async (folder: string): Promise<void> => {
  for (const name of await readdir(folder).catch(() => [])) {
    if (!name.endsWith(TEMPORARY)) continue
    const path = join(folder, name)
    const found = await stat(path).catch(() => undefined)
    if (found && Date.now() - found.mtimeMs > ABANDONED_MS) await rm(path, { force: true }).catch(() => {})
  }
}

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
  const swept = new Set<string>()
  const ensure = async (folder: string): Promise<void> => {
    await mkdir(folder, { recursive: true })
    const ignore = join(root, ".gitignore")
    const known = await stat(ignore).then(
      () => true,
      () => false,
    )
    if (!known) await writeFile(ignore, "*\n")
    if (swept.has(folder)) return
    swept.add(folder)
    await sweep(folder)
  }
  return {
    root,
    path: (...segments) => join(root, ...segments),
    write: async (path, text) => {
      const temporary = `${path}.${process.pid}-${randomBytes(4).toString("hex")}${TEMPORARY}`
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
