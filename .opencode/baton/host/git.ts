import { realpath, stat } from "node:fs/promises"
import { basename, dirname, join, resolve } from "node:path"
import type { RunProcess } from "./process.ts"
import { readOwnText, runGit } from "./untrusted.ts"

// Reads branch and HEAD from a repository's own files (gitrepository-layout(5)). Starting git takes ten times as long, and
// OpenCode waits for it.

/** Branch and HEAD of a worktree; `branch` is "(detached)" if it is on none. */
export type GitState = { branch: string; head: string }

const HASH = /^[0-9a-f]{40,64}$/

/** Reads a small file of a repository. */
export const readGitText = async (path: string): Promise<string | undefined> => {
  try {
    return (await readOwnText(path, { isForeign: true })).trim()
  } catch {
    // A missing file is not an error: each caller has another place to look.
    return undefined
  }
}

/** Finds the git folder: `.git`, or the folder named by the file `.git` in a linked worktree or submodule. */
export const findGitFolder = async (root: string): Promise<string | undefined> => {
  const path = join(root, ".git")
  const found = await stat(path).catch(() => undefined)
  if (!found) return undefined
  if (found.isDirectory()) return path
  const target = /^gitdir: (.+)$/m.exec((await readGitText(path)) ?? "")?.[1]
  return target === undefined ? undefined : resolve(root, target)
}

const findPacked = async (commonFolder: string, ref: string): Promise<string | undefined> => {
  const packed = await readGitText(join(commonFolder, "packed-refs"))
  return packed
    ?.split("\n")
    .find((line) => line.endsWith(` ${ref}`))
    ?.split(" ")[0]
}

/**
 * Reads branch and HEAD.
 *
 * @param root absolute path of the worktree's top folder
 * @returns undefined when the files do not tell: no repository, no commit yet, or a ref format other than files
 */
export const readGitState = async (root: string): Promise<GitState | undefined> => {
  const gitFolder = await findGitFolder(root)
  if (gitFolder === undefined) return undefined
  const head = await readGitText(join(gitFolder, "HEAD"))
  if (head === undefined) return undefined
  if (HASH.test(head)) return { head, branch: "(detached)" }
  const ref = /^ref: (refs\/heads\/(.+))$/.exec(head)
  const [, name, branch] = ref ?? []
  if (name === undefined || branch === undefined || name.includes("..")) return undefined
  const commonFolder = resolve(gitFolder, (await readGitText(join(gitFolder, "commondir"))) ?? ".")
  const hash = (await readGitText(join(commonFolder, name))) ?? (await findPacked(commonFolder, name))
  return hash !== undefined && HASH.test(hash) ? { head: hash, branch } : undefined
}

/**
 * Finds the folder whose name is the project's: the one that the repository was cloned or created in, which all its linked
 * worktrees share; outside a repository the project's own.
 *
 * @param projectRoot absolute path of the folder that holds `.opencode`
 */
export const findProjectFolder = async (projectRoot: string): Promise<string> => {
  for (let folder = projectRoot; ; folder = dirname(folder)) {
    const gitFolder = await findGitFolder(folder)
    if (gitFolder !== undefined) {
      const common = resolve(gitFolder, (await readGitText(join(gitFolder, "commondir"))) ?? ".")
      // `.git`, `.bare`: the folder around it has the name.
      return realpath(basename(common).startsWith(".") ? dirname(common) : common)
    }
    if (dirname(folder) === folder) return realpath(projectRoot)
  }
}

/** The name of a project's folder (see `findProjectFolder`); of a bare repository without its ending. */
export const projectNameOf = (folder: string): string => basename(folder).replace(/(?<=.)\.git$/, "")

const GIT_DEADLINE_MS = 1_000
/** Longer, since `git status` looks at every file of the worktree. */
const STATUS_DEADLINE_MS = 5_000

/**
 * Counts the commits from `commit` to HEAD; undefined if the commit is not in the repository or git fails.
 *
 * @param commit a full or abbreviated hash
 */
export const countCommitsSince = async (run: RunProcess, root: string, commit: string): Promise<number | undefined> => {
  const outcome = await runGit(run, ["rev-list", "--count", `${commit}..HEAD`], {
    cwd: root,
    deadlineMs: GIT_DEADLINE_MS,
  })
  const count = outcome.kind === "exited" && outcome.exitCode === 0 ? Number(outcome.stdout.trim()) : Number.NaN
  return Number.isInteger(count) ? count : undefined
}

/** A path relative to the worktree; `isUntracked`: git does not have it. */
export type DirtyFile = { readonly path: string; readonly isUntracked: boolean }

/** Reads the paths from `git status --porcelain=v1 -z`; for a rename the new path. */
export const parseDirtyFiles = (output: string): DirtyFile[] => {
  const fields = output.split("\0")
  const files: DirtyFile[] = []
  for (let at = 0; at < fields.length; at++) {
    const field = fields[at] ?? ""
    if (field.length < 4) continue
    files.push({ path: field.slice(3), isUntracked: field.startsWith("??") })
    // The next field is the old path of the rename or copy.
    if (/^[RC]|^.[RC]/.test(field)) at++
  }
  return files
}

/** Names the filters of all settings, so that they can be switched off: git would run them for a file whose time changed. */
const withoutFilters = async (run: RunProcess, root: string): Promise<readonly string[] | undefined> => {
  const outcome = await runGit(run, ["config", "-z", "--name-only", "--get-regexp", "^filter\\."], {
    cwd: root,
    deadlineMs: GIT_DEADLINE_MS,
  })
  if (outcome.kind !== "exited" || outcome.exitCode > 1) return undefined
  const filters = new Set(outcome.stdout.split("\0").flatMap((name) => /^filter\.(.+)\.[^.]+$/s.exec(name)?.[1] ?? []))
  // Such a name cannot be given to -c.
  if ([...filters].some((name) => name.includes("="))) return undefined
  return [...filters].flatMap((name) =>
    ["clean=", "process=", "required=false"].flatMap((setting) => ["-c", `filter.${name}.${setting}`]),
  )
}

/**
 * Lists changed and uncommitted paths; undefined if git is missing or fails. Of a folder that git does not have, only the
 * folder is listed. No filter runs: a file that one would make equal again is listed. Nor does git in a submodule.
 *
 * @param root absolute path of the worktree's top folder
 * @param folders lists what is in them, file by file
 */
export const readDirtyFiles = async (
  run: RunProcess,
  root: string,
  folders: readonly string[] = [],
): Promise<DirtyFile[] | undefined> => {
  const inside = folders.length === 0 ? [] : ["--untracked-files=all", "--", ...folders]
  const settings = await withoutFilters(run, root)
  if (settings === undefined) return undefined
  const args = ["status", "--porcelain=v1", "-z", "--ignore-submodules=dirty", ...inside]
  const outcome = await runGit(run, [...settings, ...args], { cwd: root, deadlineMs: STATUS_DEADLINE_MS })
  return outcome.kind === "exited" && outcome.exitCode === 0 ? parseDirtyFiles(outcome.stdout) : undefined
}
