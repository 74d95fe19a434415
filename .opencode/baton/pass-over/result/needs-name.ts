import { posix } from "node:path"
import type { FileModification } from "../contract.ts"

/** Files that programs run, or obey, without being asked: of OpenCode and other agents, git, the editor, the shell and CI. */
const RUNS = new RegExp(
  String.raw`(?:^|/)(?:\.(?:opencode|vscode|husky)/|\.github/workflows/|` +
    String.raw`(?:opencode\.json[^/]*|\.git[^/]*|\.envrc|\.mcp\.json|AGENTS\.md|CLAUDE\.md)$)`,
  "i",
)

export const isRun = (path: string): boolean => RUNS.test(path)

/** @param path of the link, relative to the worktree */
const leadsOut = (path: string, target: string): boolean => {
  const reached = posix.normalize(posix.join(posix.dirname(path), target))
  return posix.isAbsolute(target) || /^\.\.(?:\/|$)|^\.git(?:\/|$)/i.test(reached)
}

/** @returns the reason why a changed file is applied by its name alone; undefined for any other file */
export const reasonForName = ({
  path,
  previous_path: previous,
  link_target: target,
}: Pick<FileModification, "path" | "previous_path" | "link_target">): string | undefined => {
  if (isRun(path) || (previous !== undefined && isRun(previous))) return "programs run or obey it"
  return target !== undefined && leadsOut(path, target) ? "it leads out of the worktree" : undefined
}
