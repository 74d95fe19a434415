import { statfsSync } from "node:fs"

/** Largest tree of a sandbox, and of what a child may have changed; a larger one suggests a missing line in .gitignore. */
export const MAX_TREE_BYTES = 2 * 1024 * 1024 * 1024

/** The share of a disk that passes leave free. */
const KEPT_SHARE = 0.05

/** Tells how many bytes may be written in a folder; it is asked anew before each writing. */
export type Room = (folder: string) => number

/** @returns Infinity where the system cannot tell */
export const roomOn: Room = (folder) => {
  try {
    const { bavail, blocks, bsize } = statfsSync(folder)
    return Math.max(0, (bavail - blocks * KEPT_SHARE) * bsize)
  } catch {
    return Number.POSITIVE_INFINITY
  }
}

/** Splits items by whether they fit into the room, the small ones first. Both parts keep the order. */
export const splitByRoom = <T>(
  items: readonly T[],
  sizeOf: (item: T) => number,
  room: number,
): { fit: readonly T[]; over: readonly T[] } => {
  let left = Math.min(room, MAX_TREE_BYTES)
  const over = new Set<T>()
  for (const item of items.toSorted((one, other) => sizeOf(one) - sizeOf(other))) {
    left -= sizeOf(item)
    if (left < 0) over.add(item)
  }
  return { fit: items.filter((item) => !over.has(item)), over: [...over] }
}

const MEGABYTE = 1024 * 1024

export const describeOver = (bytes: number): string =>
  `its ${Math.ceil(bytes / MEGABYTE)} MB do not fit: a pass holds 2 GB at most and leaves a twentieth of the disk free`
