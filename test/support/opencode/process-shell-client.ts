import { spawn } from "node:child_process"
import { join } from "node:path"
import { createInterface } from "node:readline"
import type { ProcessOutcome, RunProcess } from "../../../.opencode/baton/host/process.ts"
import { type OpenCodeBinary, REPOSITORY } from "./opencode-binary.ts"

/** The `$` implementation, running inside a real OpenCode binary; `close` ends that process. */
export const startShellHost = (binary: OpenCodeBinary): { run: RunProcess; close: () => void } => {
  const script = join(REPOSITORY, "test", "fixtures", "process-shell-host.ts")
  const host = spawn(binary.path, ["--no-env-file", "--config=/dev/null", "run", script], {
    env: { ...process.env, BUN_BE_BUN: "1" },
    stdio: ["pipe", "pipe", "inherit"],
  })
  const waiting = new Map<number, (outcome: ProcessOutcome) => void>()
  createInterface({ input: host.stdout }).on("line", (line) => {
    const { id, outcome } = JSON.parse(line) as { id: number; outcome: ProcessOutcome }
    waiting.get(id)?.(outcome)
    waiting.delete(id)
  })
  let next = 0
  return {
    run: (argv, options) =>
      new Promise((resolve) => {
        next += 1
        waiting.set(next, resolve)
        // JSON has no undefined, which means a variable to remove.
        const call = JSON.stringify({ id: next, argv, options }, (_, value: unknown) => value ?? null)
        host.stdin.write(`${call}\n`)
      }),
    close: () => host.kill("SIGKILL"),
  }
}
