import { realpath } from "node:fs/promises"
import { homedir } from "node:os"
import { join, relative, sep } from "node:path"
import { replaceFile } from "../../host/state.ts"
import type { SeenTree } from "./copy-tree.ts"
import type { Git } from "./git.ts"
import { excluderFor, makeCopy, seeSource } from "./make-copy.ts"
import type { PassFolder } from "./pass-folder.ts"
import { noGit, noRepository } from "./refusal.ts"
import { removeFiles } from "./remove-copy.ts"
import { locateRepository, type Repository } from "./repository.ts"
import type { CopyRecord } from "./stored.ts"
import type { LeftOut, Refusal } from "./worktree.ts"

/** The original that a copy is made of. */
type Source = {
  readonly top: string
  /** OpenCode's directory within it, real path. */
  readonly directory: string
  readonly repository: Repository | undefined
}

/**
 * @param directory OpenCode's, or the parent pass's copy of it
 * @param copy top folder of that copy; a repository above it, found when its own is gone, is not the copy's
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

/** Tells whether the copy will contain a folder. @param folder relative to its top */
const holds = ({ files, folders }: SeenTree, folder: string): boolean => {
  const way = folder.split(sep).join("/")
  return way === "" || folders.includes(way) || files.some(({ path }) => path.startsWith(`${way}/`))
}

/** A copy that can be made, with the files it will lack. */
export type Beginning = {
  readonly kind: "begins"
  readonly directory: string
  readonly copy: string
  readonly leftOut: readonly LeftOut[]
  /** Makes the copy; on failure nothing of it stays. @throws the reason of `signal`, or a copying error */
  readonly make: (signal: AbortSignal) => Promise<void>
}

/** Lists what a copy will contain and stores its record; on failure nothing of it stays. */
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
}): Promise<Beginning | Refusal> => {
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
  const save = (leftOut: readonly LeftOut[]): Promise<void> =>
    replaceFile(folder.record, JSON.stringify({ ...record, left_out: leftOut }), { isDurable: false })
  const orGiveUp = async <T>(work: () => Promise<T>): Promise<T> => {
    try {
      return await work()
    } catch (error) {
      await removeFiles(folder)
      throw error
    }
  }
  const what = { git, from: top, repository, folder, isExcluded: excluderFor(ownFolder) }
  return await orGiveUp(async () => {
    await save([])
    const seen = await seeSource(what)
    if (seen.kind === "too-many") {
      await removeFiles(folder)
      return noRepository(`${top} is no git repository and has ${seen.found} files, which is more than a pass copies`)
    }
    if (seen.kind === "unlisted") throw new Error(seen.complaint)
    const { tree } = seen
    if (!holds(tree, relative(top, directory))) throw new Error(`${directory} holds no file that git does not ignore`)
    if (tree.leftOut.length > 0) await save(tree.leftOut)
    const make = (signal: AbortSignal): Promise<void> =>
      orGiveUp(async () => {
        const lost = await makeCopy(what, tree, signal)
        if (lost.length > 0) await save([...tree.leftOut, ...lost])
      })
    return { kind: "begins", directory: place, copy: folder.copy, leftOut: tree.leftOut, make }
  })
}
