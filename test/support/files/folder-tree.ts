import { createHash } from "node:crypto"
import { lstatSync, readdirSync, readFileSync, readlinkSync } from "node:fs"
import { join } from "node:path"

/** Where copies of passes are on their way off the disk: they go while somebody looks, and are no part of anything. */
const VANISHING = /(?:^|\/)pass-over\/\.removed$/

/** What a path is and holds, without times: reading a file is no change. */
const describe = (path: string): string => {
  const found = lstatSync(path)
  const mode = (found.mode & 0o7777).toString(8)
  if (found.isSymbolicLink()) return `link ${readlinkSync(path)}`
  if (found.isDirectory()) return `folder ${mode}`
  if (!found.isFile()) return `special ${mode}`
  return `file ${mode} ${createHash("sha256").update(readFileSync(path)).digest("hex")}`
}

/** The relative paths of everything below a folder, links not followed. */
export const listTree = (root: string, below = ""): string[] =>
  readdirSync(join(root, below), { withFileTypes: true }).flatMap((entry) => {
    const path = join(below, entry.name)
    if (VANISHING.test(path)) return []
    return entry.isDirectory() ? [path, ...listTree(root, path)] : [path]
  })

/** Everything below a folder by its relative path; equal snapshots are equal trees, byte for byte. */
export const snapshotTree = (root: string): Record<string, string> =>
  Object.fromEntries(listTree(root).map((path) => [path, describe(join(root, path))]))
