import { mkdir } from "node:fs/promises"
import { join } from "node:path"
import { errorCode } from "../../host/log.ts"
import { openBaseContents, storeContent } from "./contents.ts"
import { findCandidates } from "./differences.ts"
import { isSameSide } from "./disk.ts"
import type { Git } from "./git.ts"
import { type Difference, pairRenames } from "./modification.ts"
import type { PassFolder } from "./pass-folder.ts"
import type { HeldChanges, ManifestEntry, Side } from "./stored.ts"

/** Stores the child's version of a file. A file that the child made unreadable is named among those left out. */
const readNext = async (path: string, held: string): Promise<Side | undefined | "unreadable"> => {
  try {
    return await storeContent(path, held)
  } catch (error) {
    if (errorCode(error) === "EACCES") return "unreadable"
    throw error
  }
}

/**
 * Collects the child's changes in its copy and stores the contents before and after in `held`. Reads only files whose identity
 * differs; changes neither the copy nor the worktree.
 *
 * @param target top folder of the copy's original
 * @param toolPaths files that the child's own tools wrote
 * @throws when the copy or its original cannot be read
 */
export const collectChanges = async ({
  git,
  target,
  folder,
  manifest,
  isExcluded,
  toolPaths,
}: {
  git: Git
  target: string
  folder: PassFolder
  manifest: readonly ManifestEntry[]
  isExcluded: (path: string) => boolean
  toolPaths: ReadonlySet<string>
}): Promise<HeldChanges> => {
  const { candidates, leftOut } = await findCandidates({ git, folder, manifest, isExcluded })
  await mkdir(folder.held, { recursive: true })
  const bases = await openBaseContents({ git, target, folder, candidates })
  const differences: Difference[] = []
  const left_out = [...leftOut]
  for (const { path, began, isThere } of candidates) {
    const base = began === undefined ? null : await bases.store(began)
    const next = isThere ? await readNext(join(folder.copy, path), folder.held) : null
    if (next === "unreadable") left_out.push({ path, reason: "it may not be read" })
    else if (next === undefined) left_out.push({ path, reason: "it is neither a file nor a link" })
    else if (!isSameSide(base, next)) differences.push({ path, base, next, by: toolPaths.has(path) ? "tool" : "shell" })
  }
  return { version: 1, files: pairRenames(differences), left_out }
}
