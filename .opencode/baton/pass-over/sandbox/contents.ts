/** Stored contents, which are checked whenever they are read. */
import { createHash, type Hash } from "node:crypto"
import { createReadStream } from "node:fs"
import { mkdir, rm, stat } from "node:fs/promises"
import { join } from "node:path"
import { describeError } from "../../host/log.ts"
import type { FileModification } from "../contract.ts"
import { type Git, RefusalError, refusals, removeIndex } from "./repository.ts"
import type { Change, FileState } from "./snapshot.ts"

/** A missing git is no damage. */
const damaged = (store: string, cause: unknown): RefusalError =>
  cause instanceof RefusalError
    ? cause
    : new RefusalError(refusals.damaged(`a stored content in ${store} is missing or damaged: ${describeError(cause)}`))

const startHash = (size: number): Hash => createHash("sha1").update(`blob ${size}\0`)

/** The id that git gives to a file's content. */
const hashFile = async (path: string): Promise<string> => {
  const hash = startHash((await stat(path)).size)
  for await (const chunk of createReadStream(path)) hash.update(chunk)
  return hash.digest("hex")
}

/**
 * Writes contents from a store into files that are named by their ids, and checks each against its id.
 *
 * @param folder is emptied first
 * @returns the ids of those that are missing or damaged
 */
export const stageSound = async (
  git: Git,
  store: string,
  folder: string,
  oids: Iterable<string>,
): Promise<ReadonlySet<string>> => {
  await rm(folder, { recursive: true, force: true })
  await mkdir(folder, { recursive: true })
  const wanted = [...new Set(oids)]
  const unsound = new Set<string>()
  if (wanted.length === 0) return unsound
  const index = join(store, "staged.index")
  const options = { cwd: folder, gitFolder: store, index }
  await removeIndex(index)
  const entries = wanted.map((oid) => `100644 ${oid}\t${oid}\n`).join("")
  await git(["update-index", "--index-info"], { ...options, stdin: entries })
  await git(["checkout-index", "-a", "-q"], options).catch((error: unknown) => {
    if (error instanceof RefusalError) throw error
    // It wrote those that it could read.
  })
  for (const oid of wanted) {
    const found = await hashFile(join(folder, oid)).catch(() => undefined)
    if (found !== oid) unsound.add(oid)
  }
  return unsound
}

/** The same. @throws RefusalError when one is missing or damaged; nothing may be made of the others then */
export const stageContents = async (git: Git, store: string, folder: string, oids: Iterable<string>): Promise<void> => {
  const [unsound] = await stageSound(git, store, folder, oids)
  if (unsound !== undefined) throw damaged(store, `${unsound} does not fit its id`)
}

/** Larger contents are named but not shown; they are applied like any other. */
const LARGE_FILE_BYTES = 256 * 1024

const LINK = "120000"

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

const HEADER = /([0-9a-f]+) blob (\d+)\n/y

/**
 * Reads small contents from a store and checks each against its id.
 *
 * @throws RefusalError when one is missing or damaged
 */
const readContents = async (git: Git, store: string, oids: readonly string[]): Promise<ReadonlyMap<string, Buffer>> => {
  const contents = new Map<string, Buffer>()
  if (oids.length === 0) return contents
  const options = { cwd: store, gitFolder: store, stdin: `${oids.join("\n")}\n`, encoding: "latin1" } as const
  const batch = await git(["cat-file", "--batch"], options).catch((error: unknown) => {
    throw damaged(store, error)
  })
  let at = 0
  for (const oid of oids) {
    HEADER.lastIndex = at
    const [header = "", found, size = "0"] = HEADER.exec(batch) ?? []
    const content = Buffer.from(batch.slice(at + header.length, at + header.length + Number(size)), "latin1")
    const hash = startHash(content.length).update(content).digest("hex")
    if (found !== oid || hash !== oid) throw damaged(store, `${oid} does not fit its id`)
    contents.set(oid, content)
    at += header.length + content.length + 1
  }
  return contents
}

/** Describes changes with their texts. @throws as `readContents` does */
export const describeChanges = async (
  git: Git,
  store: string,
  changes: readonly Change[],
): Promise<FileModification[]> => {
  const isLarge = ({ base, next }: Change): boolean =>
    [base, next].some((side) => side !== null && side.size > LARGE_FILE_BYTES)
  const shown = changes.filter((change) => !isLarge(change)).flatMap(({ base, next }) => [base, next])
  const contents = await readContents(git, store, [...new Set(shown.flatMap((side) => side?.oid ?? []))])
  return changes.map((change): FileModification => {
    const { path, previous_path, base, next, by } = change
    const large = isLarge(change)
    const textOf = (side: FileState | null) =>
      side === null || large ? null : decodeUTF8(contents.get(side.oid) ?? Buffer.of(0))
    const [before, after] = [textOf(base), textOf(next)]
    const isBinary = before === undefined || after === undefined
    return {
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
      ...(next?.mode === LINK && typeof after === "string" ? { link_target: after } : {}),
      by,
    }
  })
}
