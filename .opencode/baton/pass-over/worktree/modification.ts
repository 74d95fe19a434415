import type { HeldFile, Side } from "./stored.ts"
import type { FileModification } from "./worktree.ts"

/** Larger contents are named but not shown; they are held and applied like any other. */
const LARGE_FILE_BYTES = 256 * 1024

/** A file before and after; null for a missing side. */
export type Difference = {
  readonly path: string
  readonly base: Side | null
  readonly next: Side | null
  readonly by: "tool" | "shell"
}

/** Pairs a removed and a new file of the same content as a rename; among several, one with the same file name first. */
export const pairRenames = (differences: readonly Difference[]): HeldFile[] => {
  const gone = differences.filter(({ base, next }) => base !== null && next === null && base.size > 0)
  const sources = new Map<string, Difference>()
  const isTaken = new Set<string>()
  const nameOf = (path: string): string => path.slice(path.lastIndexOf("/") + 1)
  const came = differences.filter(({ base, next }) => base === null && next !== null)
  for (const isSameNameNeeded of [true, false]) {
    for (const { path, next } of came) {
      if (sources.has(path)) continue
      const source = gone.find(
        (each) =>
          !isTaken.has(each.path) &&
          each.base?.hash === next?.hash &&
          each.base?.mode === next?.mode &&
          (!isSameNameNeeded || nameOf(each.path) === nameOf(path)),
      )
      if (source === undefined) continue
      sources.set(path, source)
      isTaken.add(source.path)
    }
  }
  return differences
    .filter(({ path }) => !isTaken.has(path))
    .map((difference) => {
      const source = sources.get(difference.path)
      const renamed = source ? { previous_path: source.path, base: source.base } : { previous_path: null }
      return { ...difference, ...renamed, fate: "held" }
    })
}

const changeOf = ({ previous_path, base, next }: HeldFile): FileModification["change"] => {
  if (previous_path !== null) return "renamed"
  if (base === null) return "added"
  if (next === null) return "deleted"
  return base.hash === next.hash ? "mode_changed" : "modified"
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

/** @param read returns the content of a side */
export const describeModification = async (
  file: HeldFile,
  read: (side: Side) => Promise<Uint8Array>,
): Promise<FileModification> => {
  const { path, previous_path, base, next, by } = file
  const isLarge = [base, next].some((side) => side !== null && side.size > LARGE_FILE_BYTES)
  const texts = await Promise.all(
    [base, next].map(async (side) => (side === null || isLarge ? null : decodeUTF8(await read(side)))),
  )
  const isBinary = texts.includes(undefined)
  const shown = texts.map((text) => (isBinary ? null : (text ?? null)))
  return {
    type: "file_modification",
    path,
    change: changeOf(file),
    ...(previous_path === null ? {} : { previous_path }),
    old_content: shown[0] ?? null,
    new_content: shown[1] ?? null,
    is_binary: isBinary,
    is_large: isLarge,
    old_hash: base?.hash ?? null,
    new_hash: next?.hash ?? null,
    old_mode: base?.mode ?? null,
    new_mode: next?.mode ?? null,
    by,
  }
}
