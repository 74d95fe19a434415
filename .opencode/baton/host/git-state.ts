import { type GitState, readGitFiles } from "./git-files.ts"
import type { RunProcess } from "./process.ts"

const GIT_DEADLINE_MS = 1_000

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
