import type { RunProcess } from "../../host/process.ts"

export type GitAnswer =
  | { readonly kind: "done"; readonly stdout: string }
  | { readonly kind: "failed"; readonly exitCode: number; readonly complaint: string }
  | { readonly kind: "absent"; readonly cause: string }

type GitOptions = {
  /** Absolute path git runs in. */
  readonly cwd: string
  readonly env?: Readonly<Record<string, string>>
  readonly stdin?: string
}

/** Runs git with arguments; never throws. */
export type Git = (args: readonly string[], options: GitOptions) => Promise<GitAnswer>

const GIT_DEADLINE_MS = 60_000
/** The names of a million files. */
const MAX_LIST_BYTES = 256 * 1024 * 1024
const COMPLAINT_CHARACTERS = 300

/**
 * A git process started by a git hook passes these variables on; they would direct every call to that other repository. Optional
 * locks are refused, so that reading the user's repository never writes its index.
 */
const NEUTRAL = {
  GIT_DIR: undefined,
  GIT_WORK_TREE: undefined,
  GIT_INDEX_FILE: undefined,
  GIT_OBJECT_DIRECTORY: undefined,
  GIT_ALTERNATE_OBJECT_DIRECTORIES: undefined,
  GIT_COMMON_DIR: undefined,
  GIT_PREFIX: undefined,
  GIT_NAMESPACE: undefined,
  GIT_OPTIONAL_LOCKS: "0",
  GIT_TERMINAL_PROMPT: "0",
  LC_ALL: "C",
}

export const createGit =
  (run: RunProcess): Git =>
  async (args, { cwd, env, stdin }) => {
    const outcome = await run(["git", "-c", "core.fsmonitor=false", "-c", "core.quotePath=false", ...args], {
      cwd,
      deadlineMs: GIT_DEADLINE_MS,
      maxOutputBytes: MAX_LIST_BYTES,
      env: { ...NEUTRAL, ...env },
      ...(stdin === undefined ? {} : { stdin }),
    })
    if (outcome.kind === "not-started") return { kind: "absent", cause: outcome.cause }
    if (outcome.kind === "timed-out") {
      return { kind: "failed", exitCode: -1, complaint: `git ${args[0]} did not end within ${GIT_DEADLINE_MS} ms` }
    }
    if (outcome.exitCode === 0) return { kind: "done", stdout: outcome.stdout }
    const complaint = outcome.stderr.trim().slice(0, COMPLAINT_CHARACTERS)
    return { kind: "failed", exitCode: outcome.exitCode, complaint: `git ${args[0]}: ${complaint}` }
  }

/** Splits git's null-terminated list. */
export const parseList = (stdout: string): string[] => stdout.split("\0").filter((field) => field !== "")
