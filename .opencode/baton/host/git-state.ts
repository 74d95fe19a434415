import { type GitState, readGitFiles } from "./git-files.ts"
import type { RunProcess } from "./process.ts"

const GIT_DEADLINE_MS = 1_000
/** It looks at every file of the worktree. */
const STATUS_DEADLINE_MS = 5_000

export type GitRead = { kind: "found"; git: GitState } | { kind: "unknown"; reason: string }

const askGit = async (run: RunProcess, directory: string): Promise<GitRead> => {
  const argv = ["git", "rev-parse", "HEAD", "--abbrev-ref", "HEAD"] as const
  const outcome = await run(argv, { cwd: directory, deadlineMs: GIT_DEADLINE_MS })
  if (outcome.kind === "not-started") return { kind: "unknown", reason: outcome.cause }
  if (outcome.kind === "timed-out") return { kind: "unknown", reason: `git did not end within ${GIT_DEADLINE_MS} ms` }
  const [head, branch] = outcome.stdout.trim().split(/\r?\n/)
  if (outcome.exitCode === 0 && head && branch) {
    return { kind: "found", git: { head, branch: branch === "HEAD" ? "(detached)" : branch } }
  }
  const complaint = outcome.stderr.trim().split("\n")[0] ?? ""
  return { kind: "unknown", reason: `git rev-parse exited with ${outcome.exitCode}: ${complaint}`.slice(0, 300) }
}

/**
 * Branch and HEAD of a worktree, from its files where they tell and from git where not; unknown outside a repository,
 * and before its first commit.
 *
 * @param root absolute path of the worktree's top folder
 */
export const readGitState = async (run: RunProcess, root: string): Promise<GitRead> => {
  const git = await readGitFiles(root)
  return git ? { kind: "found", git } : askGit(run, root)
}

/**
 * How many commits HEAD has that `commit` has not; undefined where the commit is not in the repository, or git does not answer.
 *
 * @param commit a hash, in full or its beginning
 */
export const countCommitsSince = async (run: RunProcess, root: string, commit: string): Promise<number | undefined> => {
  const argv = ["git", "rev-list", "--count", `${commit}..HEAD`] as const
  const outcome = await run(argv, { cwd: root, deadlineMs: GIT_DEADLINE_MS })
  const count = outcome.kind === "exited" && outcome.exitCode === 0 ? Number(outcome.stdout.trim()) : Number.NaN
  return Number.isInteger(count) ? count : undefined
}

/** The paths of `git status --porcelain=v1 -z`: of a rename, where it went to. */
export const parseDirtyFiles = (output: string): string[] => {
  const fields = output.split("\0")
  const files: string[] = []
  for (let at = 0; at < fields.length; at++) {
    const field = fields[at] ?? ""
    if (field.length < 4) continue
    files.push(field.slice(3))
    // The field after a rename or a copy is where it came from.
    if (/^[RC]|^.[RC]/.test(field)) at++
  }
  return files
}

/**
 * The paths that git calls changed and not committed, relative to the worktree; undefined where there is no git.
 *
 * @param root absolute path of the worktree's top folder
 */
export const readDirtyFiles = async (run: RunProcess, root: string): Promise<string[] | undefined> => {
  const argv = ["git", "--no-optional-locks", "status", "--porcelain=v1", "-z"] as const
  const outcome = await run(argv, { cwd: root, deadlineMs: STATUS_DEADLINE_MS })
  return outcome.kind === "exited" && outcome.exitCode === 0 ? parseDirtyFiles(outcome.stdout) : undefined
}
