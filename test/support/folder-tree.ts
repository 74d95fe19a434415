import { createHash } from "node:crypto"
import { lstatSync, readdirSync, readFileSync, readlinkSync } from "node:fs"
import { join } from "node:path"

/** What a path is and holds, without times: reading a file is no change. */
const describe = (path: string): string => {
  const found = lstatSync(path)
  const mode = (found.mode & 0o7777).toString(8)
  if (found.isSymbolicLink()) return `link ${readlinkSync(path)}`
  if (found.isDirectory()) return `folder ${mode}`
  if (!found.isFile()) return `special ${mode}`
  return `file ${mode} ${createHash("sha256").update(readFileSync(path)).digest("hex")}`
}

/** Everything below a folder by its relative path, links not followed; equal snapshots are equal trees, byte for byte. */
export const snapshotTree = (root: string, below = ""): Record<string, string> => {
  const tree: Record<string, string> = {}
  for (const entry of readdirSync(join(root, below), { withFileTypes: true })) {
    const path = join(below, entry.name)
    tree[path] = describe(join(root, path))
    if (entry.isDirectory()) Object.assign(tree, snapshotTree(root, path))
  }
  return tree
}
