/** Makes a sandbox of the project, or of another sandbox, and removes it. */
import { mkdirSync, mkdtempSync, renameSync } from "node:fs"
import { chmod, mkdir, readdir, realpath, rm } from "node:fs/promises"
import { homedir } from "node:os"
import { basename, join, relative, sep } from "node:path"
import { errorCode } from "../../host/log.ts"
import { replaceFile } from "../../host/state.ts"
import {
  addAlternate,
  alternateObjects,
  createSandboxRepository,
  createSnapshotRepository,
  findRepository,
  type Git,
  parseList,
  RefusalError,
  type Repository,
  readSettings,
  refusals,
} from "./repository.ts"
import { addFiles, checkOut, LIST, type ScannedTree, scanTree, statIfThere, writeTree } from "./snapshot.ts"
import type { PassFolder } from "./stored.ts"

/** Outside a repository nothing tells which files matter; this keeps a home folder from being copied. */
const MAX_FILES_OUTSIDE_GIT = 20_000

/** The folder that a sandbox is made of: its top, and OpenCode's directory within it. */
export type Source = {
  readonly top: string
  readonly directory: string
  readonly repository: Repository | undefined
}

/**
 * @param directory OpenCode's, or the parent pass's sandbox of it
 * @param sandbox top folder of that sandbox; a repository above it, found when its own is gone, is not the sandbox's
 * @throws RefusalError for a folder that is no project
 */
export const findSource = async (directory: string, sandbox: string | undefined): Promise<Source> => {
  const real = await realpath(directory)
  const [fixed, found, home] = await Promise.all([
    sandbox && realpath(sandbox),
    findRepository(real),
    realpath(homedir()).catch(() => "/"),
  ])
  const repository = fixed === undefined || found?.top === fixed ? found : undefined
  const top = repository?.top ?? fixed ?? real
  if (!repository && (top === home || top === "/"))
    throw new RefusalError(refusals.noRepository(`${top} is no git repository and too large for a sandbox`))
  return { top, directory: real, repository }
}

/**
 * Looks at the files that the sandbox will contain, which has a repository for snapshots from now on.
 *
 * @throws RefusalError without git, or for too many files
 */
export const scanSource = async (
  git: Git,
  { git: lister }: PassFolder,
  { top, directory, repository }: Source,
  { excludesFile, freeSpace }: { excludesFile: string; freeSpace: number },
): Promise<ScannedTree> => {
  await createSnapshotRepository(lister, repository && join(repository.common, "info", "exclude"))
  // Outside a repository the empty one lists all files, by the .gitignore files there are.
  const list = ["-c", `core.excludesFile=${excludesFile}`, ...LIST, ...(repository ? ["-c"] : [])]
  const paths = parseList(await git(list, { cwd: top, gitFolder: repository?.gitFolder ?? lister }))
  if (!repository && paths.length > MAX_FILES_OUTSIDE_GIT) {
    const what = `has ${paths.length} files, which is more than a sandbox holds`
    throw new RefusalError(refusals.noRepository(`${top} is no git repository and ${what}`))
  }
  const tree = await scanTree(top, paths, freeSpace)
  const folder = relative(top, directory).split(sep).join("/")
  if (folder !== "" && !tree.folders.has(folder)) throw new Error(`${directory} holds no file that git does not ignore`)
  return tree
}

/** Takes the snapshot of the files and checks it out into the sandbox. The tree's id is written last. */
export const fillSandbox = async (
  git: Git,
  { git: gitFolder, index, sandbox, base: basePath }: PassFolder,
  { source, tree, isDropped }: { source: Source; tree: ScannedTree; isDropped: () => boolean },
): Promise<void> => {
  const { top, repository } = source
  const settings = repository ? await readSettings(git, repository) : []
  const objects = repository && alternateObjects(repository, settings)
  if (objects !== undefined) await addAlternate(gitFolder, objects)
  await addFiles({ git, top, gitFolder, index }, tree.files)
  if (isDropped()) return
  const base = await writeTree({ git, top, gitFolder, index })
  await mkdir(sandbox, { recursive: true })
  const steps = [
    checkOut({ git, top: sandbox, gitFolder, index }, tree),
    createSandboxRepository(git, join(sandbox, ".git"), { repository, settings }),
  ]
  // So that nothing is still being written when it rejects.
  await Promise.allSettled(steps)
  await Promise.all(steps)
  await replaceFile(basePath, base, { isDurable: false })
}

const makeWritable = async (folder: string): Promise<void> => {
  await chmod(folder, 0o700)
  for (const entry of await readdir(folder, { withFileTypes: true }))
    if (entry.isDirectory()) await makeWritable(join(folder, entry.name))
}

/** Deletes a file or folder, with what folders without the right to write hold, as Go makes them. */
export const removeAll = async (path: string): Promise<void> => {
  const remove = () => rm(path, { recursive: true, force: true })
  try {
    await remove()
  } catch (error) {
    if (errorCode(error) !== "EACCES") throw error
    await makeWritable(path)
    await remove()
  }
}

/** The record goes first: a sandbox without one belongs to no pass. */
export const removeFiles = async ({ root, sandbox }: PassFolder): Promise<void> => {
  await removeAll(root)
  await removeAll(sandbox)
}

/**
 * Moves paths away, so that they are gone from their place at once; deleting takes time per file and is not waited for.
 *
 * @param aside folder on the same file system, which the next start empties
 */
export const discard = async (aside: string, paths: readonly string[]) => {
  try {
    mkdirSync(aside, { recursive: true })
    const place = mkdtempSync(join(aside, "sandbox-"))
    for (const path of paths) {
      if (statIfThere(path) !== undefined) renameSync(path, join(place, basename(path)))
    }
    void removeAll(place).catch(() => {})
  } catch {
    // A file is in the way, or it is on another file system.
    for (const path of paths) await removeAll(path)
  }
}
