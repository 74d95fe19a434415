import { realpath, rm } from "node:fs/promises"
import { homedir } from "node:os"
import { join, relative } from "node:path"
import { replaceFile } from "../../host/replace-file.ts"
import type { Git } from "./git.ts"
import { excluderFor, makeCopy } from "./make-copy.ts"
import type { PassFolder } from "./pass-folder.ts"
import { noGit, noRepository } from "./refusal.ts"
import { locateRepository, type Repository } from "./repository.ts"
import { isFolder } from "./stage.ts"
import type { CopyRecord } from "./stored.ts"
import type { Begun, Refusal } from "./worktree.ts"

/** What a copy is made of. */
export type Source = {
  readonly top: string
  /** OpenCode's directory within it, real path. */
  readonly directory: string
  readonly repository: Repository | undefined
}

/**
 * @param directory OpenCode's, or the parent pass's copy of it
 * @param copy top folder of that copy: a repository found above it, because its own is gone, is not the copy's
 */
export const findSource = async (git: Git, directory: string, copy?: string): Promise<Source | Refusal> => {
  const real = await realpath(directory)
  const fixed = copy === undefined ? undefined : await realpath(copy)
  const located = await locateRepository(git, real)
  if (located.kind === "no-git") return noGit(`a pass that changes files needs git: ${located.cause}`)
  if (located.kind === "repository") {
    const top = await realpath(located.repository.top)
    if (fixed === undefined || top === fixed) return { top, directory: real, repository: located.repository }
  }
  if (fixed !== undefined) return { top: fixed, directory: real, repository: undefined }
  const isProject = real !== (await realpath(homedir())) && real !== "/"
  if (isProject) return { top: real, directory: real, repository: undefined }
  const why = located.kind === "none" ? located.complaint : ""
  return noRepository(`${real} is no git repository (${why}) and too large to be copied`)
}

/** Makes the copy for a child and leaves a record of it; without success nothing of it stays. */
export const beginPass = async ({
  git,
  source,
  folder,
  ownFolder,
  now,
}: {
  git: Git
  source: Source
  folder: PassFolder
  ownFolder: string
  now: () => Date
}): Promise<Begun | Refusal> => {
  const { top, directory, repository } = source
  const place = join(folder.copy, relative(top, directory))
  const record: CopyRecord = {
    version: 1,
    began_at: now().toISOString(),
    directory: place,
    target: top,
    own_folder: ownFolder,
    left_out: [],
  }
  const giveUp = async (): Promise<void> => {
    await rm(folder.copy, { recursive: true, force: true })
    await rm(folder.root, { recursive: true, force: true })
  }
  try {
    await replaceFile(folder.record, JSON.stringify(record), { isDurable: false })
    const made = await makeCopy({ git, from: top, repository, folder, isExcluded: excluderFor(ownFolder) })
    if (made.kind === "too-many") {
      await giveUp()
      return noRepository(`${top} is no git repository and has ${made.found} files, which is more than a pass copies`)
    }
    if (made.kind === "unlisted") throw new Error(made.complaint)
    if (!(await isFolder(place))) throw new Error(`${directory} holds no file that git does not ignore`)
    const leftOut = [...made.leftOut]
    if (leftOut.length > 0) {
      await replaceFile(folder.record, JSON.stringify({ ...record, left_out: leftOut }), { isDurable: false })
    }
    return { kind: "begun", directory: place, copy: folder.copy, leftOut }
  } catch (error) {
    await giveUp()
    throw error
  }
}
