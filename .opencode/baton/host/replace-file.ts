import { randomBytes } from "node:crypto"
import { open, rename, rm } from "node:fs/promises"

/** What the name of a half-written file ends in. */
export const TEMPORARY = ".tmp"

/**
 * Writes by unique temporary file and rename: a reader sees the old text or the new one, never a half.
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
    const file = await open(temporary, "wx", mode)
    try {
      await file.writeFile(text)
      if (isDurable) await file.sync()
    } finally {
      await file.close()
    }
    await rename(temporary, path)
  } catch (error) {
    await rm(temporary, { force: true })
    throw error
  }
}
