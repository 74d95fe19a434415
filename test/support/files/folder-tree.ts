import { createHash } from "node:crypto"
import { lstatSync, readdirSync, readFileSync, readlinkSync } from "node:fs"
import { rm } from "node:fs/promises"
import { join } from "node:path"

/** Copies of passes during their removal: they may disappear at any time, so they are ignored. */
const VANISHING = /(?:^|\/)pass-over\/\.removed$/

/** Undefined if a program removed it since its folder was read, as OpenCode does with its temporary files. */
const ifThere = <T>(read: () => T): T | undefined => {
  try {
    return read()
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined
    throw error
  }
}

/** Type and content of a path without times: a read is no change. */
const describe = (path: string): string => {
  const found = lstatSync(path)
  const mode = (found.mode & 0o7777).toString(8)
  if (found.isSymbolicLink()) return `link ${readlinkSync(path)}`
  if (found.isDirectory()) return `folder ${mode}`
  if (!found.isFile()) return `special ${mode}`
  return `file ${mode} ${createHash("sha256").update(readFileSync(path)).digest("hex")}`
}

/** The relative paths of all entries below a folder; links are not followed. */
export const listTree = (root: string, below = ""): string[] =>
  readdirSync(join(root, below), { withFileTypes: true }).flatMap((entry) => {
    const path = join(below, entry.name)
    if (VANISHING.test(path)) return []
    if (!entry.isDirectory()) return [path]
    const entries = ifThere(() => listTree(root, path))
    return entries === undefined ? [] : [path, ...entries]
  })

/** The content of a folder by relative path; equal snapshots are equal trees, byte for byte. */
export const snapshotTree = (root: string): Record<string, string> =>
  Object.fromEntries(
    listTree(root).flatMap((path) => {
      const found = ifThere(() => describe(join(root, path)))
      return found === undefined ? [] : [[path, found]]
    }),
  )

/**
 * Removes a folder into which a program that outlived its test may still write, such as a `git gc` that OpenCode 1.2.15 left
 * running: new files are removed too. `rmSync` repeats only its last step and fails again.
 *
 * @throws the file system's error, ENOTEMPTY if a program writes for longer than 20 attempts (about 20 s)
 */
export const removeFolder = (folder: string): Promise<void> =>
  rm(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 })
