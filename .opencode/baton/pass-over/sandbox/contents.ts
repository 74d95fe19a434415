/** Stored contents, which are checked whenever they are read. */
import { mkdir, readFile, rm } from "node:fs/promises"
import { join } from "node:path"
import type { FileModification } from "../contract.ts"
import { type Git, RefusalError, refusals } from "./repository.ts"
import type { Change, Side } from "./snapshot.ts"

/**
 * Writes contents from a store into files that are named by their ids, and checks each against its id.
 *
 * @param folder is emptied first
 * @throws RefusalError when one is missing or damaged; nothing may be made of the others then
 */
export const stageContents = async (git: Git, store: string, folder: string, oids: Iterable<string>): Promise<void> => {
  await rm(folder, { recursive: true, force: true })
  await mkdir(folder, { recursive: true })
  const wanted = [...new Set(oids)]
  if (wanted.length === 0) return
  const index = join(store, "staged.index")
  const options = { cwd: folder, gitFolder: store, index }
  let found: string[]
  try {
    await rm(index, { force: true })
    const entries = wanted.map((oid) => `100644 ${oid}\t${oid}\n`).join("")
    await git(["update-index", "--index-info"], { ...options, stdin: entries })
    await git(["checkout-index", "-a", "-q"], options)
    const names = `${wanted.join("\n")}\n`
    found = (await git(["hash-object", "--no-filters", "--stdin-paths"], { ...options, stdin: names }))
      .trim()
      .split("\n")
  } catch (error) {
    if (error instanceof RefusalError) throw error
    throw new RefusalError(refusals.damaged(`a stored content in ${store} is missing or damaged: ${String(error)}`))
  }
  const other = wanted.find((oid, at) => found[at] !== oid)
  if (other !== undefined)
    throw new RefusalError(refusals.damaged(`the stored content ${other} in ${store} is damaged`))
}

/** Larger contents are named but not shown; they are applied like any other. */
const LARGE_FILE_BYTES = 256 * 1024

const changeOf = ({ previous_path, base, next }: Change): FileModification["change"] => {
  if (previous_path !== null) return "renamed"
  if (base === null) return "added"
  if (next === null) return "deleted"
  return base.oid === next.oid ? "mode_changed" : "modified"
}

/** Decodes UTF-8 exactly, with any byte order mark; undefined for everything else. */
const decodeUTF8 = (bytes: Uint8Array): string | undefined => {
  if (bytes.includes(0)) return undefined
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch (error) {
    // Thrown by a fatal decoder for invalid UTF-8.
    if (error instanceof TypeError) return undefined
    throw error
  }
}

/** Describes changes with their texts. @throws as `stageContents` does */
export const describeChanges = async (
  git: Git,
  store: string,
  changes: readonly Change[],
): Promise<FileModification[]> => {
  const isLarge = ({ base, next }: Change): boolean =>
    [base, next].some((side) => side !== null && side.size > LARGE_FILE_BYTES)
  const shown = changes.filter((change) => !isLarge(change)).flatMap(({ base, next }) => [base, next])
  const folder = join(store, "shown")
  try {
    await stageContents(
      git,
      store,
      folder,
      shown.flatMap((side) => side?.oid ?? []),
    )
    const described: FileModification[] = []
    for (const change of changes) {
      const { path, previous_path, base, next, by } = change
      const large = isLarge(change)
      const textOf = async (side: Side | null) =>
        side === null || large ? null : decodeUTF8(await readFile(join(folder, side.oid)))
      const [before, after] = [await textOf(base), await textOf(next)]
      const isBinary = before === undefined || after === undefined
      described.push({
        type: "file_modification",
        path,
        change: changeOf(change),
        ...(previous_path === null ? {} : { previous_path }),
        old_content: isBinary ? null : before,
        new_content: isBinary ? null : after,
        is_binary: isBinary,
        is_large: large,
        old_hash: base?.oid ?? null,
        new_hash: next?.oid ?? null,
        old_mode: base?.mode ?? null,
        new_mode: next?.mode ?? null,
        by,
      })
    }
    return described
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}
