import { join } from "node:path"
import type { StateFolder } from "../../host/state.ts"

/** Where the files of one pass lie; the pass's own record is beside them, in the folder above. */
export type PassFolder = {
  readonly root: string
  /** What the pass began with: who, where, when. */
  readonly record: string
  readonly manifest: string
  /** The index of the user's repository as it was. */
  readonly index: string
  /** An empty repository, for git to list files by the rules of .gitignore and nothing else. */
  readonly lister: string
  /** Contents that the child began with and that no repository has. */
  readonly base: string
  /** What the child changed: the list, and the contents by their hash. */
  readonly changes: string
  readonly held: string
  /** There while files are being written into the worktree: what was there before. */
  readonly undo: string
  readonly journal: string
  readonly lock: string
  readonly copy: string
  /** Where the copies of all passes go to be deleted; on the same file system. */
  readonly aside: string
}

export const PASSES_FOLDER = "pass-over"

/** No name of a pass. */
const ASIDE_FOLDER = ".removed"

export const asideFolder = (state: Pick<StateFolder, "path">): string => state.path(PASSES_FOLDER, ASIDE_FOLDER)

const FOLDER_NAME = /^[\w-]{1,100}$/

/** @returns undefined for an id that is none, as one that would lead out of the folder */
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
