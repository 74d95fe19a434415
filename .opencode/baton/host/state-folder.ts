import { mkdirSync, readdirSync, rmSync, statSync } from "node:fs"
import { dirname, join } from "node:path"
import { ignoreAll } from "./ignore-all.ts"
import { replaceFile, TEMPORARY } from "./replace-file.ts"

const OPENCODE_FOLDER = ".opencode"

/** No write takes this long, so that a temporary file of this age is one whose process was killed. */
const ABANDONED_MS = 10 * 60_000

/** Passes have folders of their own, and a server makes many; one that was forgotten is swept again. */
const MAX_SWEPT = 100

/** Removes what killed processes left half-written in a folder. What cannot be removed stays. */
const sweep = (folder: string): void => {
  const removeIfOld = (path: string): void => {
    try {
      if (Date.now() - statSync(path).mtimeMs > ABANDONED_MS) rmSync(path, { force: true })
    } catch {
      // It is gone by now, or nobody may remove it.
    }
  }
  try {
    for (const name of readdirSync(folder)) if (name.endsWith(TEMPORARY)) removeIfOld(join(folder, name))
  } catch {
    // A folder that cannot be listed can be written to all the same.
  }
}

/** Everything the bundle writes at run time lies here, ignored by git. */
export type StateFolder = {
  /** Absolute path of the folder. */
  readonly root: string
  /** Absolute path of something inside it; creates nothing. */
  path(...segments: string[]): string
  /** Makes a folder inside it, for somebody else to write in: ignored by git like the rest. */
  prepare(...segments: string[]): Promise<void>
  /**
   * A reader sees the old text or the new one, never a half. On the disk when it resolves, unless `isDurable` is false: then it
   * outlives this process, however that ends, and may be lost with the power.
   */
  write(path: string, text: string, options?: { isDurable?: boolean }): Promise<void>
}

/**
 * @param projectRoot absolute path of the folder that holds `.opencode`
 * @throws nothing here; `prepare` and `write` reject with the file system's own error (EACCES, EROFS, ENOSPC, …)
 */
export const createStateFolder = (projectRoot: string): StateFolder => {
  const root = join(projectRoot, OPENCODE_FOLDER, "state")
  const swept = new Set<string>()
  const ensure = (folder: string): void => {
    mkdirSync(folder, { recursive: true })
    ignoreAll(root)
    if (swept.has(folder)) return
    if (swept.size >= MAX_SWEPT) swept.clear()
    swept.add(folder)
    sweep(folder)
  }
  return {
    root,
    path: (...segments) => join(root, ...segments),
    prepare: async (...segments) => ensure(join(root, ...segments)),
    write: async (path, text, options = {}) => {
      ensure(dirname(path))
      await replaceFile(path, text, options)
    },
  }
}
