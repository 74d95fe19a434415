import { join, resolve } from "node:path"
import { type Git, type GitAnswer, parseList } from "./git.ts"

/** Absolute paths of a repository's parts; those of a linked worktree are in different folders. */
export type Repository = {
  readonly top: string
  readonly gitFolder: string
  readonly index: string
  readonly objects: string
  readonly exclude: string
}

type Located =
  | { readonly kind: "repository"; readonly repository: Repository }
  | { readonly kind: "none"; readonly complaint: string }
  | { readonly kind: "no-git"; readonly cause: string }

const PARTS = ["index", "objects", "info/exclude"].flatMap((part) => ["--git-path", part])

export const locateRepository = async (git: Git, folder: string): Promise<Located> => {
  const answer = await git(["rev-parse", "--show-toplevel", "--absolute-git-dir", ...PARTS], { cwd: folder })
  if (answer.kind === "absent") return { kind: "no-git", cause: answer.cause }
  if (answer.kind === "failed") return { kind: "none", complaint: answer.complaint }
  const [top, gitFolder, ...parts] = answer.stdout.split("\n").map((line) => line.replace(/\r$/, ""))
  const [index, objects, exclude] = parts
  if (!top || !gitFolder || !index || !objects || !exclude) {
    return { kind: "none", complaint: `git rev-parse answered ${JSON.stringify(answer.stdout)}` }
  }
  const absolute = (path: string): string => resolve(folder, path)
  return {
    kind: "repository",
    repository: { top, gitFolder, index: absolute(index), objects: absolute(objects), exclude: absolute(exclude) },
  }
}

export type ListedFile = {
  readonly path: string
  /** True when the file is in the index and git checks it for changes: not for untracked and assume-unchanged files. */
  readonly isIndexed: boolean
}

/** Parses `git ls-files -z -v`: a letter, a space, the path. `H` is a file of the index without flags. */
const parseListing = (stdout: string): ListedFile[] => {
  const files = new Map<string, ListedFile>()
  for (const field of parseList(stdout))
    files.set(field.slice(2), { path: field.slice(2), isIndexed: field[0] === "H" })
  return [...files.values()]
}

type Listed = { readonly files: readonly ListedFile[] } | { readonly complaint: string }

const LIST = ["ls-files", "-z", "-v", "-o", "--exclude-standard"]

const readListing = (answer: GitAnswer): Listed => {
  if (answer.kind === "done") return { files: parseListing(answer.stdout) }
  return { complaint: answer.kind === "failed" ? answer.complaint : answer.cause }
}

/** Lists tracked and untracked files of a repository, without ignored ones. @param index a copy of its index */
export const listRepository = async (git: Git, { top }: Repository, index: string): Promise<Listed> =>
  readListing(await git([...LIST, "-c"], { cwd: top, env: { GIT_INDEX_FILE: index } }))

/** Lists every file of a folder that its own .gitignore files do not exclude. */
export const listFolder = async (git: Git, folder: string, lister: string): Promise<Listed> =>
  readListing(await git(["--git-dir", lister, "--work-tree", folder, ...LIST], { cwd: folder }))

/**
 * Lists files of the index that differ from the disk, or may: only times are compared.
 *
 * @param index a copy of the repository's index
 * @returns undefined when git fails
 */
export const listStale = async (
  git: Git,
  { top }: Repository,
  index: string,
): Promise<ReadonlySet<string> | undefined> => {
  const args = ["-c", "core.checkStat=default", "diff-files", "-z", "--name-only", "--ignore-submodules=all"]
  const answer = await git(args, { cwd: top, env: { GIT_INDEX_FILE: index } })
  return answer.kind === "done" ? new Set(parseList(answer.stdout)) : undefined
}

/** Writes files of an index below `folder`, like a checkout of the repository. Files not in it are left out. */
export const checkOutOf = async (
  git: Git,
  { top, index, folder }: { top: string; index: string; folder: string },
  paths: readonly string[],
): Promise<void> => {
  if (paths.length === 0) return
  await git(["checkout-index", "-q", "-f", "-z", "--stdin", `--prefix=${join(folder, "/")}`], {
    cwd: top,
    env: { GIT_INDEX_FILE: index },
    stdin: paths.map((path) => `${path}\0`).join(""),
  })
}
