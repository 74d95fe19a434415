import { copyFile, mkdir } from "node:fs/promises"
import { dirname, join } from "node:path"
import { isNotFound } from "../../host/log.ts"
import { replaceFile } from "../../host/state.ts"
import { copyIndex, createCopyRepository, createEmptyRepository } from "./copy-repository.ts"
import { copyTree, lookAtTree, type SeenTree } from "./copy-tree.ts"
import { copyContent, forEachItem } from "./disk.ts"
import type { Git } from "./git.ts"
import type { PassFolder } from "./pass-folder.ts"
import { listFolder, listRepository, listStale, type Repository } from "./repository.ts"
import type { ManifestEntry } from "./stored.ts"
import type { LeftOut } from "./worktree.ts"

/** Outside a repository nothing tells which files matter; this keeps a home folder from being copied. */
const MAX_FILES_OUTSIDE_GIT = 20_000

/** Excludes the bundle's state and `.git` in any spelling that a file system accepts for it. */
export const excluderFor =
  (ownFolder: string) =>
  (path: string): boolean =>
    path.startsWith(`${ownFolder}/`) || path.split("/").some((part) => part.toLowerCase() === ".git")

type SeenSource =
  | { readonly kind: "seen"; readonly tree: SeenTree }
  | { readonly kind: "too-many"; readonly found: number }
  | { readonly kind: "unlisted"; readonly complaint: string }

type CopySource = {
  readonly git: Git
  /** Top folder of the original. */
  readonly from: string
  /** undefined outside a repository. */
  readonly repository: Repository | undefined
  readonly folder: PassFolder
  readonly isExcluded: (path: string) => boolean
}

/** Lists the contents of a copy. @throws the errors of listing */
export const seeSource = async ({ git, from, repository, folder, isExcluded }: CopySource): Promise<SeenSource> => {
  await createEmptyRepository(folder.lister)
  if (repository) {
    await copyFile(repository.exclude, join(folder.lister, "info", "exclude")).catch((error: unknown) => {
      if (!isNotFound(error)) throw error
    })
  }
  if (repository) await copyIndex(repository, dirname(folder.index))
  const listed = await (repository
    ? listRepository(git, repository, folder.index)
    : listFolder(git, from, folder.lister))
  if ("complaint" in listed) return { kind: "unlisted", complaint: listed.complaint }
  const found = listed.files.length
  if (!repository && found > MAX_FILES_OUTSIDE_GIT) return { kind: "too-many", found }
  return { kind: "seen", tree: await lookAtTree({ from, files: listed.files, isExcluded }) }
}

/**
 * Makes the copy of a pass and stores the contents that git cannot restore: those in no index, of changed and untracked files.
 * Git is asked after copying, so that a file changed meanwhile is stored as the child got it.
 *
 * @returns the files that could not be copied after all
 * @throws the reason of `signal`, or a copying error
 */
export const makeCopy = async (
  { git, from, repository, folder }: CopySource,
  tree: SeenTree,
  signal: AbortSignal,
): Promise<readonly LeftOut[]> => {
  const own = join(folder.copy, ".git")
  await mkdir(folder.copy, { recursive: true })
  const copying = copyTree({ from, to: folder.copy, tree, signal })
  const preparing = repository ? createCopyRepository(git, repository, own) : createEmptyRepository(own)
  // So that nothing is still being written when it rejects.
  await Promise.allSettled([copying, preparing])
  const [copied] = await Promise.all([copying, preparing])
  const stale = repository ? await listStale(git, repository, folder.index) : undefined
  await mkdir(folder.base, { recursive: true })
  const manifest: ManifestEntry[] = []
  await forEachItem(copied.files, ({ isIndexed, link, size, ...entry }, at) => {
    signal.throwIfAborted()
    const isKept = isIndexed && !entry.is_racy && stale !== undefined && !stale.has(entry.path)
    const stored = link === undefined && !isKept ? String(at) : undefined
    const base = link === undefined ? (stored === undefined ? ("index" as const) : { stored }) : { link }
    manifest.push({ ...entry, base })
    if (stored === undefined) return undefined
    return copyContent(join(folder.copy, entry.path), join(folder.base, stored), size)
  })
  // A child that has not started has nothing to lose, and a flush would wait for thousands of new files.
  await replaceFile(folder.manifest, JSON.stringify(manifest), { isDurable: false })
  return copied.leftOut
}
