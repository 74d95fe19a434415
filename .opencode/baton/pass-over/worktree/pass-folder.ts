import { join } from "node:path"
import type { StateFolder } from "../../host/state.ts"

/** Paths of one pass's files; the pass's own record is in the folder above. */
export type PassFolder = {
  readonly root: string
  /** The start of the pass: agents, folders, time. */
  readonly record: string
  readonly manifest: string
  /** A copy of the user's index at the start. */
  readonly index: string
  /** An empty repository, so that git lists files by the rules of .gitignore alone. */
  readonly lister: string
  /** Contents that the child began with and that are in no repository. */
  readonly base: string
  /** The child's changes: the list, and in `held` the contents by hash. */
  readonly changes: string
  readonly held: string
  /** Exists while files are written into the worktree: the previous contents. */
  readonly undo: string
  readonly journal: string
  readonly lock: string
  readonly copy: string
  /** The copies of all passes are moved here to be deleted; on the same file system. */
  readonly aside: string
}

export const PASSES_FOLDER = "pass-over"

/** Not a valid pass id. */
const ASIDE_FOLDER = ".removed"

export const asideFolder = (state: Pick<StateFolder, "path">): string => state.path(PASSES_FOLDER, ASIDE_FOLDER)

const FOLDER_NAME = /^[\w-]{1,100}$/

/** @returns undefined for an invalid id, such as one that would lead out of the folder */
export const passFolder = (state: Pick<StateFolder, "path">, passID: string): PassFolder | undefined => {
  if (!FOLDER_NAME.test(passID)) return undefined
  const root = state.path(PASSES_FOLDER, passID, "files")
  return {
    root,
    record: join(root, "record.json"),
    manifest: join(root, "manifest.json"),
    index: join(root, "index"),
    lister: join(root, "lister"),
    base: join(root, "base"),
    changes: join(root, "changes.json"),
    held: join(root, "held"),
    undo: join(root, "undo"),
    journal: join(root, "undo", "journal.json"),
    lock: join(root, "lock"),
    copy: state.path(PASSES_FOLDER, passID, "copy"),
    aside: asideFolder(state),
  }
}
