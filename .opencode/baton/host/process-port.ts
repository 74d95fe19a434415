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
  /**
   * The deadline passed and the program has been killed; it may have done its work before. `leftBehind` says why it
   * could not be killed.
   */
  | { readonly kind: "timed-out"; readonly deadlineMs: number; readonly leftBehind?: string }
  /** The program never ran: not found, not executable, a bad working directory, arguments the system refuses. */
  | { readonly kind: "not-started"; readonly cause: string }

/** Runs one program to its end. Never throws, never prints, never inherits stdio. */
export type RunProcess = (argv: Argv, options: RunOptions) => Promise<ProcessOutcome>

/** 4 MB of each stream: far above what a ledger prints for one task, far below what hurts the host. */
export const MAX_OUTPUT_BYTES = 4 * 1024 * 1024

/** The environment of a child: the host's own with these changes. */
export const childEnvironment = (changes: RunOptions["env"]): Record<string, string> => {
  const merged = Object.entries({ ...process.env, ...changes })
  return Object.fromEntries(merged.filter((pair): pair is [string, string] => pair[1] !== undefined))
}
