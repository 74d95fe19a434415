import { spawn } from "node:child_process"
import { signalIfThere } from "../../../.opencode/baton/host/process.ts"
import { hasEnded, startOfProcess } from "../../../.opencode/baton/host/process-identity.ts"
import { collectOutput } from "../collect-output.ts"
import { readProcesses } from "../files/process-table.ts"
import { deadline } from "./deadline.ts"
import { isLine2, type OpenCodeBinary } from "./opencode-binary.ts"
import { eventually } from "./opencode-server.ts"
import type { TestProject } from "./test-project.ts"

export type RunResult = {
  exitCode: number | null
  signal: string | null
  stdout: string
  stderr: string
  durationMs: number
}

export type RunOptions = {
  binary: OpenCodeBinary
  project: Pick<TestProject, "directory" | "environment">
  /** Extra arguments after `run`, for instance `["--session", id]`. */
  args?: readonly string[]
  /** A program that starts OpenCode, such as `setpriv …`. */
  launcher?: readonly string[]
  environment?: Readonly<Record<string, string>>
  /** On an idle machine. */
  deadlineMs?: number
  /** Called with the child's pid after its start, for tests that kill it. */
  onStart?: (pid: number) => void
}

const RUN_DEADLINE_MS = 90_000

/** Runs a program in the project and collects its output; kills it at the deadline. */
export const runProgram = (
  argv: readonly string[],
  options: Omit<RunOptions, "binary" | "args" | "launcher"> & { stdin?: string },
): Promise<RunResult> =>
  new Promise((resolve, reject) => {
    const started = performance.now()
    const [program = "", ...args] = argv
    const { directory: cwd, environment } = options.project
    const child = spawn(program, args, { cwd, env: { ...environment, ...options.environment }, stdio: "pipe" })
    const printed = collectOutput(child)
    child.stdin.on("error", () => {})
    child.stdin.end(options.stdin ?? "")
    const timer = setTimeout(() => child.kill("SIGKILL"), deadline(options.deadlineMs ?? RUN_DEADLINE_MS))
    child.on("error", reject)
    child.on("spawn", () => options.onStart?.(child.pid ?? -1))
    child.on("close", (exitCode, signal) => {
      clearTimeout(timer)
      const durationMs = performance.now() - started
      resolve({ exitCode, signal, stdout: printed.stdout(), stderr: printed.stderr(), durationMs })
    })
  })

/**
 * Ends OpenCode as `kill -9` does, with the server that a `run` of OpenCode 2 starts for its session. Waits until they are gone: on a
 * busy machine a killed process lives on for a while.
 */
export const killOpenCode = async (pid: number): Promise<void> => {
  const all = await readProcesses(process.platform)
  const servers = all.filter(({ parent, args }) => parent === pid && /opencode\b.*\bserve\b/s.test(args))
  const killed = [pid, ...servers.map((server) => server.pid)].map((each) => ({
    pid: each,
    start: startOfProcess(each),
  }))
  for (const each of killed) signalIfThere(each.pid, "SIGKILL")
  const isOver = () => killed.every((each) => hasEnded(each.pid, each.start) !== false) || undefined
  await eventually("the end of a killed OpenCode", isOver)
}

/** `opencode run MESSAGE`, with the message on stdin because OpenCode wraps an argument in quotes. */
export const runOpenCode = (message: string, options: RunOptions): Promise<RunResult> => {
  const { binary, args = [], launcher = [], ...rest } = options
  // Without it OpenCode 2 leaves a service behind that serves all projects.
  const own = isLine2(binary) ? ["--standalone"] : ["--log-level", "DEBUG"]
  const argv = [...launcher, binary.path, "run", ...own, ...args]
  return runProgram(argv, { ...rest, stdin: message })
}
