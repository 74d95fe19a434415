import type { RunProcess } from "../host/process.ts"
import type { GitState } from "./facts.ts"

const GIT_DEADLINE_MS = 1_000

/** Branch and HEAD of the folder's repository; undefined outside a repository or before its first commit. */
export const readGitState = async (run: RunProcess, directory: string): Promise<GitState | undefined> => {
  const argv = ["git", "rev-parse", "HEAD", "--abbrev-ref", "HEAD"] as const
  const outcome = await run(argv, { cwd: directory, deadlineMs: GIT_DEADLINE_MS })
  if (outcome.kind !== "exited" || outcome.exitCode !== 0) return undefined
  const [head, branch] = outcome.stdout.trim().split(/\r?\n/)
  return head && branch ? { head, branch: branch === "HEAD" ? "(detached)" : branch } : undefined
}
