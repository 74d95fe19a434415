import { readdir, readFile } from "node:fs/promises"
import { join } from "node:path"
import { isAbsent } from "../host/log.ts"

/** OpenCode scans both names, and not their sub-folders. */
const FOLDERS = ["plugin", "plugins"] as const

/** What tells a plugin of Baton from anybody else's: it imports the shared folder. */
const IMPORTS_BATON = /from\s*["']\.\.\/baton\//

const pluginsIn = async (folder: string): Promise<readonly string[]> => {
  let names: readonly string[]
  try {
    names = await readdir(folder)
  } catch (error) {
    if (isAbsent(error)) return []
    throw error
  }
  const paths = names
    .filter((file) => /\.(ts|js)$/.test(file))
    .sort()
    .map((file) => join(folder, file))
  const texts = await Promise.all(paths.map((path) => readFile(path, "utf8").catch(() => "")))
  return paths.filter((_, index) => IMPORTS_BATON.test(texts[index] ?? ""))
}

/**
 * Absolute paths of Baton's plugin files that OpenCode would load from a configuration folder, `.opencode` or the global
 * one. A file that cannot be read is left out.
 */
export const findBatonPlugins = async (configuration: string): Promise<readonly string[]> =>
  (await Promise.all(FOLDERS.map((folder) => pluginsIn(join(configuration, folder))))).flat()
