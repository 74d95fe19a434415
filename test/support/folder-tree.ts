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

/** Everything below a folder by its relative path; two equal snapshots are the same tree, byte for byte. */
export const snapshotTree = (root: string): Record<string, string> => {
  const tree: Record<string, string> = {}
  for (const name of readdirSync(root, { recursive: true, encoding: "utf8" }).sort()) {
    tree[name] = describe(join(root, name))
  }
  return tree
}
