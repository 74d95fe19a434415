import { join } from "node:path"
import { uncarriedReason } from "./copy-tree.ts"
import { createWayCheck, forEachItem, identityOf, statIfThere } from "./disk.ts"
import type { Git } from "./git.ts"
import type { PassFolder } from "./pass-folder.ts"
import { listFolder } from "./repository.ts"
import type { ManifestEntry } from "./stored.ts"
import type { LeftOut } from "./worktree.ts"

/** A file that the child may have changed, made (no `began`) or removed (`isThere` false). */
export type Candidate = { readonly path: string; readonly began: ManifestEntry | undefined; readonly isThere: boolean }

export type Candidates = { readonly candidates: readonly Candidate[]; readonly leftOut: readonly LeftOut[] }

/**
 * What may differ in a copy from what was put there, judged by identities; contents are not read. What .gitignore names
 * counts only where it was in the copy from the beginning.
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

  const listed = await listFolder(git, folder.copy, folder.lister)
  if ("complaint" in listed) throw new Error(`the copy of the pass could not be listed: ${listed.complaint}`)
  for (const { path } of listed.files) {
    if (began.has(path) || isExcluded(path)) continue
    const reason = uncarriedReason(path)
    if (reason !== undefined) leftOut.push({ path, reason })
    else candidates.push({ path, began: undefined, isThere: true })
  }
  return { candidates: candidates.sort((one, other) => (one.path < other.path ? -1 : 1)), leftOut }
}
