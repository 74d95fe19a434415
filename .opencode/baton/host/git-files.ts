/**
 * Branch and HEAD out of a repository's own files, as gitrepository-layout(5) describes them. Starting git costs ten times
 * as much, and OpenCode waits for it.
 */
import { readFile, stat } from "node:fs/promises"
import { basename, dirname, join, resolve } from "node:path"

/** Where a worktree stands; `branch` is "(detached)" when it is on none. */
export type GitState = { branch: string; head: string }

const HASH = /^[0-9a-f]{40,64}$/

const readText = async (path: string): Promise<string | undefined> => {
  try {
    return (await readFile(path, "utf8")).trim()
  } catch {
    // A file that is not there is an answer of its own: each caller has a next place to look.
    return undefined
  }
}

/** `.git` is a folder, or in a linked worktree or submodule a file that names one. */
const findGitFolder = async (root: string): Promise<string | undefined> => {
  const path = join(root, ".git")
  const found = await stat(path).catch(() => undefined)
  if (!found) return undefined
  if (found.isDirectory()) return path
  const target = /^gitdir: (.+)$/m.exec((await readText(path)) ?? "")?.[1]
  return target === undefined ? undefined : resolve(root, target)
}

const findPacked = async (commonFolder: string, ref: string): Promise<string | undefined> => {
  const packed = await readText(join(commonFolder, "packed-refs"))
  return packed
    ?.split("\n")
    .find((line) => line.endsWith(` ${ref}`))
    ?.split(" ")[0]
}

/**
 * @param root absolute path of the worktree's top folder
 * @returns undefined when the files do not tell: no repository, no commit yet, or a ref format other than files
 */
export const readGitFiles = async (root: string): Promise<GitState | undefined> => {
  const gitFolder = await findGitFolder(root)
  if (gitFolder === undefined) return undefined
  const head = await readText(join(gitFolder, "HEAD"))
  if (head === undefined) return undefined
  if (HASH.test(head)) return { head, branch: "(detached)" }
  const ref = /^ref: (refs\/heads\/(.+))$/.exec(head)
  const [, name, branch] = ref ?? []
  if (name === undefined || branch === undefined || name.includes("..")) return undefined
  const commonFolder = resolve(gitFolder, (await readText(join(gitFolder, "commondir"))) ?? ".")
  const hash = (await readText(join(commonFolder, name))) ?? (await findPacked(commonFolder, name))
  return hash !== undefined && HASH.test(hash) ? { head: hash, branch } : undefined
}

/**
 * The folder that a repository was cloned or made in, the same for all of its linked worktrees.
 *
 * @param start absolute path of a folder inside a worktree
 * @returns undefined outside a repository
 */
export const findMainWorktree = async (start: string): Promise<string | undefined> => {
  for (let folder = start; ; folder = dirname(folder)) {
    const gitFolder = await findGitFolder(folder)
    if (gitFolder !== undefined) {
      const common = resolve(gitFolder, (await readText(join(gitFolder, "commondir"))) ?? ".")
      return basename(common) === ".git" ? dirname(common) : common
    }
    if (dirname(folder) === folder) return undefined
  }
}
