// The bundle's structure, as the structure test checks it: `node scripts/support/structure.mjs` prints it.
import { readdirSync, readFileSync } from "node:fs"
import { dirname, join, normalize, resolve } from "node:path"
import { fileURLToPath } from "node:url"

const REPOSITORY = join(dirname(fileURLToPath(import.meta.url)), "..", "..")
const BATON = ".opencode/baton"

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

/** @param {readonly number[]} numbers */
const medianOf = (numbers) => numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? 0

/** Files, lines, median and longest of each room. */
export const rooms = () => {
  const all = filesIn(BATON)
  const names = [...new Set(all.map((path) => path.split("/")[2] ?? ""))]
  return [...names.map((name) => [name, all.filter((path) => path.split("/")[2] === name)]), ["all", all]].map(
    ([name, files]) => {
      const lines = files.map(linesOf)
      const sum = lines.reduce((total, count) => total + count, 0)
      return { name, files: files.length, lines: sum, median: medianOf(lines), longest: Math.max(...lines) }
    },
  )
}

/** The files that each plugin file reaches by its imports, including those loaded at first use. */
export const reach = () =>
  filesIn(".opencode/plugins").map((plugin) => ({
    plugin: plugin.replace(".opencode/plugins/", ""),
    files: reachedFrom([plugin], { dynamic: true }).length,
  }))

if (process.argv[1] && resolve(process.argv[1]) === fileURLToPath(import.meta.url)) {
  console.table(rooms())
  console.table(reach())
}
