import { realpath } from "node:fs/promises"
import { basename } from "node:path"
import { findMainWorktree } from "../host/git.ts"

/** Whose learnings these are. */
export type LearningProject = {
  /** What prog calls it. */
  readonly name: string
  /** What tells it from others of that name; the same for all worktrees of a repository. */
  readonly folder: string
  /** Learnings of other folders are left alone, unless the user named the project. */
  readonly onlyFolder: string | undefined
}

/** @param named the user's own name for the project, from the settings */
export const findLearningProject = async (projectRoot: string, named: string | undefined): Promise<LearningProject> => {
  const folder = await realpath((await findMainWorktree(projectRoot)) ?? projectRoot)
  return { name: named ?? basename(folder), folder, onlyFolder: named === undefined ? folder : undefined }
}
