import { existsSync } from "node:fs"
import { dirname, join } from "node:path"
import { hasBundle } from "../host/project.ts"
import { listFolder, readOwnText } from "../host/untrusted.ts"
import type { Context } from "./context.ts"

/** The copy of Baton that OpenCode loads for a project. */
export type Serving = {
  readonly kind: "project" | "global" | "package" | "none"
  /** Its folder with `plugins` and `baton`; for "none" the project's, where there would be one. */
  readonly folder: string
  /** Baton's plugin files in it. */
  readonly plugins: readonly string[]
  /** For "package": the entry in opencode.json. */
  readonly entry?: string
  /** The file or folder of a path of the manifest. */
  readonly at: (path: string) => string
}

/** OpenCode scans both folders, but not their sub-folders. */
const FOLDERS = ["plugin", "plugins"] as const

/** Matches Baton's plugins: they import the shared folder. */
const IMPORTS_BATON = /from\s*["']\.\.\/baton\//

const pluginsIn = async (folder: string): Promise<readonly string[]> => {
  const paths = listFolder(folder)
    .filter((file) => /\.(ts|js)$/.test(file))
    .map((file) => join(folder, file))
  const texts = await Promise.all(paths.map((path) => readOwnText(path, { isForeign: true }).catch(() => "")))
  return paths.filter((_, index) => IMPORTS_BATON.test(texts[index] ?? ""))
}

/**
 * Absolute paths of Baton's plugin files that OpenCode would load from a configuration folder, `.opencode` or the global one.
 * Unreadable files are left out.
 */
export const findBatonPlugins = async (configuration: string): Promise<readonly string[]> =>
  (await Promise.all(FOLDERS.map((folder) => pluginsIn(join(configuration, folder))))).flat()

/** `.opencode` of the parent folders up to the one with `.git`: OpenCode reads them all. */
const outerFolders = (root: string): readonly string[] => {
  const outer: string[] = []
  let folder = root
  while (!existsSync(join(folder, ".git")) && dirname(folder) !== folder) {
    folder = dirname(folder)
    outer.push(join(folder, ".opencode"))
  }
  return existsSync(join(folder, ".git")) ? outer : []
}

export const globalFolder = ({ environment, home }: Pick<Context, "environment" | "home">): string =>
  join(environment.XDG_CONFIG_HOME || join(home, ".config"), "opencode")

/** All other folders from which OpenCode loads plugins for this project. */
export const otherFolders = (context: Context): readonly string[] => {
  const { root, home, environment } = context
  const configured = environment.OPENCODE_CONFIG_DIR
  const all = [
    globalFolder(context),
    join(home, ".opencode"),
    ...(configured ? [configured] : []),
    ...outerFolders(root),
  ]
  return [...new Set(all)].filter((folder) => folder !== join(root, ".opencode"))
}

const PACKAGE = "baton-opencode"
const ENTRY = /"(baton-opencode(?:@[^"\s]+)?)"/

/** The package's entry in OpenCode's settings for this project; lines that are comments do not count. */
export const findEntry = async (context: Context): Promise<string | undefined> => {
  const { root } = context
  const folders = [root, join(root, ".opencode"), ...otherFolders(context)]
  const files = folders.flatMap((folder) =>
    ["opencode.json", "opencode.jsonc", "config.json"].map((name) => join(folder, name)),
  )
  const texts = await Promise.all(files.map((path) => readOwnText(path, { isForeign: true }).catch(() => "")))
  return ENTRY.exec(texts.join("\n").replaceAll(/^\s*\/\/.*$/gm, ""))?.[1]
}

/** The package in the cache of OpenCode, which keeps a folder for each entry on 1.18 and one for all on 1.2.15. */
const findCached = ({ environment, home }: Context, entry: string): string | undefined => {
  const cache = join(environment.XDG_CACHE_HOME || join(home, ".cache"), "opencode")
  const entries = [entry, `${PACKAGE}@latest`]
  const places = [...entries.map((name) => join(cache, "packages", name)), cache]
  return places.map((place) => join(place, "node_modules", PACKAGE)).find((folder) => existsSync(folder))
}

/** Finds the copy that serves: the project's own comes first, as in enterCopy. */
export const findServing = async (context: Context): Promise<Serving> => {
  const { root } = context
  const own = join(root, ".opencode")
  const at = (path: string): string => join(root, path)
  const plugins = await findBatonPlugins(own)
  if (hasBundle(root)) return { kind: "project", folder: own, plugins, at }
  for (const folder of otherFolders(context)) {
    const found = await findBatonPlugins(folder)
    if (found.length === 0) continue
    return { kind: "global", folder, plugins: found, at: (path) => join(folder, path.replace(/^\.opencode\/?/, "")) }
  }
  const entry = await findEntry(context)
  if (entry === undefined) return { kind: "none", folder: own, plugins, at }
  const cached = findCached(context, entry)
  const folder = join(cached ?? root, ".opencode")
  return {
    kind: "package",
    entry,
    folder,
    plugins: cached ? await findBatonPlugins(folder) : [],
    at: (path) => join(cached ?? root, path),
  }
}
