// The bundle's structure, as the structure test checks it.
import { readdirSync, readFileSync } from "node:fs"
import { dirname, join, normalize } from "node:path"

const REPOSITORY = join(import.meta.dirname, "..", "..")

/** Imports that take effect when a file is loaded: neither types alone nor `import()`. */
const STATIC_IMPORT = /^(?:import|export)\s+(?!type\b)(?:[^"';]*?\sfrom\s+)?"([^"]+)"/gm
const DYNAMIC_IMPORT = /\bimport\("([^"]+)"\)/g

/** @param {string} path relative to the repository */
const read = (path) => readFileSync(join(REPOSITORY, path), "utf8")

/** @param {string} path */
export const linesOf = (path) => read(path).match(/\n/g)?.length ?? 0

/** The TypeScript files below a folder, relative to the repository. @param {string} folder */
export const filesIn = (folder) =>
  readdirSync(join(REPOSITORY, folder), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts"))
    .map((name) => `${folder}/${name}`)
    .sort()

/**
 * The bundle's files that are loaded with the entries, including the entries.
 *
 * @param {readonly string[]} entries relative to the repository
 * @param {{ dynamic?: boolean }} [options] `dynamic`: also files loaded at first use
 */
export const reachedFrom = (entries, { dynamic = false } = {}) => {
  /** @type {Set<string>} */
  const reached = new Set()
  /** @param {string} path */
  const visit = (path) => {
    if (reached.has(path)) return
    reached.add(path)
    const text = read(path)
    const found = [...text.matchAll(STATIC_IMPORT), ...(dynamic ? text.matchAll(DYNAMIC_IMPORT) : [])]
    for (const [, target = ""] of found) if (target.startsWith(".")) visit(normalize(join(dirname(path), target)))
  }
  entries.forEach(visit)
  return [...reached].sort()
}

/** The files that each plugin file reaches by its imports, including those loaded at first use. */
export const reach = () =>
  filesIn(".opencode/plugins").map((plugin) => ({
    plugin: plugin.replace(".opencode/plugins/", ""),
    files: reachedFrom([plugin], { dynamic: true }).length,
  }))
