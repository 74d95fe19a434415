import { randomBytes } from "node:crypto"
import { closeSync, fsync, openSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { promisify } from "node:util"

/** What the name of a half-written file ends in. */
export const TEMPORARY = ".tmp"

const flush = promisify(fsync)

/** Never throws: the error that led here is the one to tell, and what stays is swept later. */
export const removeTemporary = (path: string): void => {
  try {
    rmSync(path, { force: true })
  } catch {
    // Where its folder went, it went too.
  }
}

/**
 * Writes by unique temporary file and rename: a reader sees the old text or the new one, never a half. Only the flush is waited
 * for: each step takes microseconds, and waiting for one costs a turn of OpenCode's event loop, milliseconds while it is busy.
 *
 * @param options `isDurable`: on the disk, not only in its cache, before the old text is gone (default true)
 * @throws the file system's own error (EACCES, EROFS, ENOSPC, …); nothing is left behind then
 */
export const replaceFile = async (
  path: string,
  text: string,
  { mode = 0o666, isDurable = true }: { mode?: number; isDurable?: boolean } = {},
): Promise<void> => {
  const temporary = `${path}.${process.pid}-${randomBytes(4).toString("hex")}${TEMPORARY}`
  try {
    const file = openSync(temporary, "wx", mode)
    try {
      writeFileSync(file, text)
      if (isDurable) await flush(file)
    } finally {
      closeSync(file)
    }
    renameSync(temporary, path)
  } catch (error) {
    removeTemporary(temporary)
    throw error
  }
}
