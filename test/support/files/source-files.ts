import { readdirSync, readFileSync } from "node:fs"
import { dirname, join, normalize, relative } from "node:path"
import { REPOSITORY } from "../opencode/opencode-binary.ts"

/** Paths of the repository's own files below `folder`, relative to the repository, that end in `ending`. */
export const sourceFiles = (folder: string, ending = ".ts"): string[] =>
  readdirSync(join(REPOSITORY, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith(ending))
    .map((entry) => relative(REPOSITORY, join(entry.parentPath, entry.name)))
    .filter((path) => !path.includes("node_modules"))
    .sort()

/** Lines of all these files together. */
export const linesOf = (paths: readonly string[]): number =>
  paths.reduce((sum, path) => sum + readFileSync(join(REPOSITORY, path), "utf8").split("\n").length - 1, 0)

/** Imports that take effect when a file is loaded: neither types alone nor `import()`. */
const STATIC_IMPORT = /^(?:import|export)\s+(?!type\b)(?:[^"';]*?\sfrom\s+)?"([^"]+)"/gm
const DYNAMIC_IMPORT = /\bimport\("([^"]+)"\)/g

/** The bundle's files that are loaded with the entries, including the entries; `dynamic`: also those loaded at first use. */
export const reachedFrom = (entries: readonly string[], { dynamic = false } = {}): string[] => {
  const reached = new Set<string>()
  const visit = (path: string): void => {
    if (reached.has(path)) return
    reached.add(path)
    const text = readFileSync(join(REPOSITORY, path), "utf8")
    const found = [...text.matchAll(STATIC_IMPORT), ...(dynamic ? text.matchAll(DYNAMIC_IMPORT) : [])]
    for (const [, target = ""] of found) if (target.startsWith(".")) visit(normalize(join(dirname(path), target)))
  }
  entries.forEach(visit)
  return [...reached].sort()
}

const ANY_IMPORT = /\b(?:import|export)\s[^"';]*?\sfrom\s+"(\.[^"]+)"|\bimport\(\s*"(\.[^"]+)"/g

/** The files that a file imports by any import, one of types or at first use included. */
const importsOf = (path: string): string[] =>
  [...readFileSync(join(REPOSITORY, path), "utf8").matchAll(ANY_IMPORT)].map(([, fixed, lazy]) =>
    normalize(join(dirname(path), fixed ?? lazy ?? "")),
  )

/** The groups of files that import one another, by Tarjan's algorithm. */
export const circlesAmong = (paths: readonly string[]): string[][] => {
  const lowest = new Map<string, number>()
  const stack: string[] = []
  const circles: string[][] = []
  const visit = (path: string): number => {
    const index = lowest.size
    lowest.set(path, index)
    stack.push(path)
    let low = index
    for (const target of importsOf(path).filter((each) => paths.includes(each))) {
      if (!lowest.has(target)) low = Math.min(low, visit(target))
      else if (stack.includes(target)) low = Math.min(low, lowest.get(target) ?? low)
    }
    if (low === index) {
      const circle = stack.splice(stack.indexOf(path))
      if (circle.length > 1) circles.push(circle.sort())
    }
    return low
  }
  for (const path of paths) if (!lowest.has(path)) visit(path)
  return circles
}
