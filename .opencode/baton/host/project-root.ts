import { existsSync } from "node:fs"
import { dirname, join, relative } from "node:path"

/** The project an OpenCode directory belongs to: its nearest ancestor (up to the worktree) that has `.opencode`. */
export const findProjectRoot = (directory: string, worktree: string): string => {
  let current = directory
  for (;;) {
    if (existsSync(join(current, ".opencode"))) return current
    const parent = dirname(current)
    const outside = relative(worktree, current) === "" || parent === current || worktree === "/"
    if (outside) return directory
    current = parent
  }
}

/** The project that a person means who stands in a folder: the nearest one upwards with `.opencode`, else the folder. */
export const findNearestProject = (start: string): string => {
  for (let folder = start; ; folder = dirname(folder)) {
    if (existsSync(join(folder, ".opencode"))) return folder
    if (dirname(folder) === folder) return start
  }
}
