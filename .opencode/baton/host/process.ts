import type { PluginInput } from "@opencode-ai/plugin"
import { createNodeRunner } from "./process-node.ts"
import type { RunProcess } from "./process-port.ts"
import { createShellRunner } from "./process-shell.ts"

export type { Argv, ProcessOutcome, RunOptions, RunProcess } from "./process-port.ts"

export type ProcessRunnerDeps = {
  /** Bun's `$` as OpenCode hands it to a plugin; undefined on Node (OpenCode Desktop). */
  readonly shell: PluginInput["$"] | undefined
  readonly platform?: NodeJS.Platform
}

/**
 * The process runner for this host: Bun's `$` where there is one and a POSIX shell to bound a child with, otherwise
 * node:child_process, which both runtimes have.
 */
export const createProcessRunner = ({ shell, platform = process.platform }: ProcessRunnerDeps): RunProcess => {
  const run = shell && platform !== "win32" ? createShellRunner({ shell, platform }) : createNodeRunner({ platform })
  return async (argv, options) => {
    const unsendable = argv.findIndex((argument) => argument.includes("\0"))
    if (unsendable < 0) return await run(argv, options)
    const cause = `argument ${unsendable} of ${argv[0]} contains a NUL character, which no program can receive`
    return { kind: "not-started", cause }
  }
}
