import { readdirSync } from "node:fs"
import { join, relative } from "node:path"
import { REPOSITORY } from "../opencode/opencode-binary.ts"

/** Paths of the repository's own files below `folder`, relative to the repository, that end in `ending`. */
export const sourceFiles = (folder: string, ending: string): string[] =>
  readdirSync(join(REPOSITORY, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith(ending))
    .map((entry) => relative(REPOSITORY, join(entry.parentPath, entry.name)))
    .filter((path) => !path.includes("node_modules"))
    .sort()
