import { constants } from "node:fs"
import { access, stat } from "node:fs/promises"
import { delimiter, isAbsolute, join } from "node:path"

export const isExecutableFile = async (path: string): Promise<boolean> => {
  try {
    await access(path, constants.X_OK)
    return (await stat(path)).isFile()
  } catch {
    // Absent or not permitted: for a search along PATH both mean "not this one".
    return false
  }
}

/**
 * @param path the value of PATH
 * @returns every executable file of that name, in PATH's order; relative folders are left out, since they would run whatever
 *   the project holds
 */
export const findPrograms = async (name: string, path: string | undefined): Promise<readonly string[]> => {
  const folders = (path ?? "").split(delimiter).filter(isAbsolute)
  const candidates = [...new Set(folders)].map((folder) => join(folder, name))
  const usable = await Promise.all(candidates.map(isExecutableFile))
  return candidates.filter((_, index) => usable[index])
}
