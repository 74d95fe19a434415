import { readFile } from "node:fs/promises"
import { join } from "node:path"
import { isAbsent } from "../host/log.ts"

/** Written by scripts/install; see docs/installation.md. */
const MANIFEST_PATH = ".opencode/baton/.manifest"

export type Manifest = {
  /** Baton's version as the first line tells it; undefined when it does not. */
  readonly version: string | undefined
  /** By path, relative to the project. A run that was interrupted leaves two sums for one path. */
  readonly files: ReadonlyMap<string, readonly { readonly crc: number; readonly size: number }[]>
}

const FILE_LINE = /^(\d+)\t(\d+)\t(.+)$/

export const parseManifest = (text: string): Manifest => {
  const files = new Map<string, { crc: number; size: number }[]>()
  for (const line of text.split("\n")) {
    const [, crc, size, path] = FILE_LINE.exec(line) ?? []
    if (path === undefined) continue
    const sums = files.get(path) ?? []
    sums.push({ crc: Number(crc), size: Number(size) })
    files.set(path, sums)
  }
  return { version: /^#.* Baton (\d\S*)$/m.exec(text)?.[1], files }
}

/** @returns undefined when the project has none: a checkout, or a copy made by hand */
export const readManifest = async (root: string): Promise<Manifest | undefined> => {
  try {
    return parseManifest(await readFile(join(root, MANIFEST_PATH), "utf8"))
  } catch (error) {
    if (isAbsent(error)) return undefined
    throw error
  }
}
