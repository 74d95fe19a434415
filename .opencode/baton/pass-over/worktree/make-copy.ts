import { copyFile, mkdir } from "node:fs/promises"
import { dirname, join } from "node:path"
import { isAbsent } from "../../host/error-code.ts"
import { replaceFile } from "../../host/replace-file.ts"
import { copyIndex, createCopyRepository, createEmptyRepository } from "./copy-repository.ts"
import { type CopiedFile, copyTree } from "./copy-tree.ts"
import { forEachItem } from "./disk.ts"
import type { Git } from "./git.ts"
import type { PassFolder } from "./pass-folder.ts"
import { listFolder, listRepository, listStale, type Repository } from "./repository.ts"
import type { ManifestEntry } from "./stored.ts"
import type { LeftOut } from "./worktree.ts"

/** Outside a repository nothing says what matters; a home folder is not a project. */
export const MAX_FILES_OUTSIDE_GIT = 20_000

/** Never carried by a pass: the bundle's state, and what makes a repository, in any spelling a file system takes for it. */
export const excluderFor =
  (ownFolder: string) =>
  (path: string): boolean =>
    path.startsWith(`${ownFolder}/`) || path.split("/").some((part) => part.toLowerCase() === ".git")

export type MadeCopy =
  | { readonly kind: "made"; readonly manifest: readonly ManifestEntry[]; readonly leftOut: readonly LeftOut[] }
  | { readonly kind: "too-many"; readonly found: number }
  | { readonly kind: "unlisted"; readonly complaint: string }

export type MakeCopy = {
  readonly git: Git
  /** Top folder of what is copied. */
  readonly from: string
  /** undefined outside a repository. */
  readonly repository: Repository | undefined
  readonly folder: PassFolder
  readonly isExcluded: (path: string) => boolean
}

const linkOf = ({ link }: CopiedFile): { link: string } | undefined => (link === undefined ? undefined : { link })

/**
 * Makes the copy of a pass and keeps what git would not give back: contents that are in no index, as of changed and
 * untracked files. That is asked after the copy is made, so that a file changed meanwhile is kept as the child got it.
 *
 * @throws what copying throws
 */
export const makeCopy = async ({ git, from, repository, folder, isExcluded }: MakeCopy): Promise<MadeCopy> => {
  await createEmptyRepository(folder.lister)
  if (repository) {
    await copyFile(repository.exclude, join(folder.lister, "info", "exclude")).catch((error: unknown) => {
      if (!isAbsent(error)) throw error
    })
  }
  const listed = await (repository ? listRepository(git, repository) : listFolder(git, from, folder.lister))
  if ("complaint" in listed) return { kind: "unlisted", complaint: listed.complaint }
  const found = listed.files.length
  if (!repository && found > MAX_FILES_OUTSIDE_GIT) return { kind: "too-many", found }

  await mkdir(folder.copy, { recursive: true })
  if (repository) await copyIndex(repository, dirname(folder.index))
  const tree = await copyTree({ from, to: folder.copy, files: listed.files, isExcluded })
  const stale = repository ? await listStale(git, repository) : undefined
  await mkdir(folder.base, { recursive: true })
  const manifest: ManifestEntry[] = new Array(tree.files.length)
  await forEachItem(tree.files, async (file, at) => {
    const { isIndexed, link: _, ...entry } = file
    const isKept = isIndexed && !file.is_racy && stale !== undefined && !stale.has(file.path)
    const base = linkOf(file) ?? (isKept ? ("index" as const) : { stored: String(at) })
    if (typeof base === "object" && "stored" in base)
      await copyFile(join(folder.copy, file.path), join(folder.base, base.stored))
    manifest[at] = { ...entry, base }
  })
  await (repository
    ? createCopyRepository(git, repository, folder.copy)
    : createEmptyRepository(join(folder.copy, ".git")))
  await replaceFile(folder.manifest, JSON.stringify(manifest))
  return { kind: "made", manifest, leftOut: tree.leftOut }
}
