import type { PluginInput } from "@opencode-ai/plugin"
import { createNodeRunner } from "./process-node.ts"
import { createShellRunner } from "./process-shell.ts"

/** A program and its arguments; each one arrives at the program byte for byte, whatever it holds. */
export type Argv = readonly [string, ...string[]]

export type RunOptions = {
  /** Absolute path the program runs in. */
  readonly cwd: string
  /** Milliseconds from the call until the program and what it started are ended. */
  readonly deadlineMs: number
  /** What the program reads; nothing at all (an empty stdin) when absent. Never the host's own stdin. */
  readonly stdin?: string
  /** Added to the host's environment for this child alone; `undefined` removes a variable. */
  readonly env?: Readonly<Record<string, string | undefined>>
  /** Bytes kept of stdout and of stderr, each; a program that writes more is cut off there. */
  readonly maxOutputBytes?: number
}

export type ProcessOutcome =
  /** A program that a signal ended has the exit code 128 + signal, as in a shell. */
  | { readonly kind: "exited"; readonly exitCode: number; readonly stdout: string; readonly stderr: string }
  /** The deadline passed; the program has been killed, yet it may have done its work before. */
  | { readonly kind: "timed-out"; readonly deadlineMs: number }
  /** The program never ran: not found, not executable, a bad working directory, arguments the system refuses. */
  | { readonly kind: "not-started"; readonly cause: string }

/** Runs one program to its end. Never throws, never prints, never inherits stdio. */
export type RunProcess = (argv: Argv, options: RunOptions) => Promise<ProcessOutcome>

/** 4 MB of each stream: far above what a ledger prints, far below what hurts the host. */
export const MAX_OUTPUT_BYTES = 4 * 1024 * 1024

export type ProcessRunnerDeps = {
  /** Bun's `$` as OpenCode hands it to a plugin; undefined on Node (OpenCode Desktop). */
  readonly shell: PluginInput["$"] | undefined
  readonly platform?: NodeJS.Platform
}

/**
 * The process runner for this host: Bun's `$` where there is one and a POSIX shell to end a hung child with, otherwise
 * node:child_process, which both runtimes have.
 */
export const createProcessRunner = ({ shell, platform = process.platform }: ProcessRunnerDeps): RunProcess => {
  const run = shell && platform !== "win32" ? createShellRunner(shell, platform) : createNodeRunner(platform)
  return (argv, options) => {
    const unsendable = argv.findIndex((argument) => argument.includes("\0"))
    if (unsendable < 0) return run(argv, options)
    const cause = `argument ${unsendable} of ${argv[0]} contains a NUL character, which no program can receive`
    return Promise.resolve({ kind: "not-started", cause })
  }
}
