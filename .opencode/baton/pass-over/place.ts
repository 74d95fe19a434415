import { type Place, redirectPath } from "./sandbox/paths.ts"

/**
 * Returns the place where a pass's tools work.
 *
 * @param own OpenCode's directory and the worktree's top folder, in each spelling
 * @param above place of the originator's tools, when it works on a pass itself
 */
export const toPlace = (
  own: { readonly directory: string; readonly roots: readonly [string, ...string[]] },
  copy: string,
  above: Place | undefined,
): Place => {
  const [worktree, ...spellings] = own.roots
  if (!above) return { directory: own.directory, worktree, spellings, copy }
  // A subagent that may not change files works in its originator's copy.
  if (above.copy === copy) return above
  return {
    directory: redirectPath(above.directory, above),
    worktree: above.copy,
    spellings: [above.worktree, ...(above.spellings ?? [])],
    copy,
  }
}
