import { createClock, createCommandContext } from "../../../.opencode/baton/ledger/embedded/command-context.ts"
import type { LedgerResult } from "../../../.opencode/baton/ledger/embedded/ledger-result.ts"
import { runCommand } from "../../../.opencode/baton/ledger/embedded/run-command.ts"
import { createMemoryStore } from "./memory-store.ts"

export type LedgerOptions = {
  /** What the command reads from standard input: `learn … --detail -`. */
  readonly stdin?: string
}

/** Runs one prog command line: the arguments without the program's name. A refusal is an exit code, no rejection. */
export type RunLedger = (args: readonly string[], options?: LedgerOptions) => Promise<LedgerResult>

/**
 * A whole ledger in memory, for tests of what talks to prog: same commands, output and exit codes as the embedded one.
 * Loads on Node and on Bun.
 * @param nowMs milliseconds since 1970
 */
export const createMemoryLedger = (nowMs: () => number = Date.now): RunLedger => {
  const store = createMemoryStore(nowMs)
  const timestamp = createClock(nowMs)
  return (args, options = {}) => {
    const readStdin = (): string => options.stdin ?? ""
    return runCommand(args, createCommandContext({ openStore: () => store, readStdin, nowMs, timestamp }))
  }
}
