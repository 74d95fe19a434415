import { join } from "node:path"
import { uncarriedReason } from "./copy-tree.ts"
import { createWayCheck, forEachItem, identityOf, statIfThere } from "./disk.ts"
import type { Git } from "./git.ts"
import type { PassFolder } from "./pass-folder.ts"
import { listFolder } from "./repository.ts"
import type { ManifestEntry } from "./stored.ts"
import type { LeftOut } from "./worktree.ts"

const REPOSITORY = ".git"

/** Git lists a nested repository as a folder. */
const isRepository = (path: string): boolean => path.endsWith("/")

/** Tells whether a work result of the child exists only in its copy; a repository's `.git` folder is not one. */
export const hasUncarried = (leftOut: readonly LeftOut[]): boolean =>
  leftOut.some(({ path }) => !path.endsWith(`/${REPOSITORY}`))

/** A file that the child may have changed, created (no `began`) or removed (`isThere` false). */
export type Candidate = { readonly path: string; readonly began: ManifestEntry | undefined; readonly isThere: boolean }

type Candidates = { readonly candidates: readonly Candidate[]; readonly leftOut: readonly LeftOut[] }

/**
 * Finds the files of a copy that may differ from the original, by identity; contents are not read. Ignored files count only if
 * they were copied at the beginning.
 *
 * @throws when git does not list the copy
 */
export const findCandidates = async ({
  git,
  folder,
  manifest,
  isExcluded,
}: {
  git: Git
  folder: PassFolder
  manifest: readonly ManifestEntry[]
  isExcluded: (path: string) => boolean
}): Promise<Candidates> => {
  const candidates: Candidate[] = []
  const leftOut: LeftOut[] = []
  const isOnRealWay = createWayCheck(folder.copy)
  const began = new Set(manifest.map(({ path }) => path))

  await forEachItem(manifest, (entry) => {
    const found = isOnRealWay(entry.path) ? statIfThere(join(folder.copy, entry.path)) : undefined
    const isThere = found !== undefined && !found.isDirectory()
    const isTouched = !isThere || entry.is_racy || identityOf(found) !== entry.copy
    if (isTouched) candidates.push({ path: entry.path, began: entry, isThere })
    return undefined
  })

  /** @param way path of a repository that the child made in its copy, ending in `/`; empty for the copy itself */
  const listNew = async (way: string): Promise<void> => {
    const listed = await listFolder(git, join(folder.copy, way), folder.lister)
    if ("complaint" in listed) throw new Error(`the copy of the pass could not be listed: ${listed.complaint}`)
    for (const file of listed.files) {
      const path = `${way}${file.path}`
      if (began.has(path) || isExcluded(path)) continue
      if (isRepository(path)) {
        leftOut.push({ path: `${path}${REPOSITORY}`, reason: "its files are carried, its history is not" })
        await listNew(path)
        continue
      }
      const reason = uncarriedReason(path)
      if (reason !== undefined) leftOut.push({ path, reason })
      else candidates.push({ path, began: undefined, isThere: true })
    }
  }
  await listNew("")
  return { candidates: candidates.sort((one, other) => (one.path < other.path ? -1 : 1)), leftOut }
}
