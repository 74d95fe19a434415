import { createProcessRunner } from "../host/process.ts"
import { runGit } from "../host/untrusted.ts"

const DEADLINE_MS = 120_000
const run = createProcessRunner({ shell: undefined })

export type GitAnswer = { readonly isOk: boolean; readonly output: string; readonly complaint: string }

/** Runs git in a folder; never throws. */
export const git = async (directory: string, ...args: string[]): Promise<GitAnswer> => {
  const outcome = await runGit(run, args, { cwd: directory, deadlineMs: DEADLINE_MS })
  if (outcome.kind === "exited")
    return { isOk: outcome.exitCode === 0, output: outcome.stdout.trim(), complaint: outcome.stderr.trim() }
  const complaint = outcome.kind === "timed-out" ? `git ${args[0]} did not end` : outcome.cause
  return { isOk: false, output: "", complaint }
}

/** @throws Error with git's complaint */
export const gitOrThrow = async (directory: string, ...args: string[]): Promise<string> => {
  const { isOk, output, complaint } = await git(directory, ...args)
  if (isOk) return output
  throw new Error(`git ${args.join(" ")}: ${complaint.split("\n")[0] || "failed"}`)
}
