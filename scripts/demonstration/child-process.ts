import { spawn } from "node:child_process"

export type ChildResult = { exitCode: number | null; stdout: string; stderr: string }

export type ChildOptions = {
  cwd: string
  environment: Record<string, string>
  stdin?: string
  /** Called with each line of standard output as it comes. */
  onLine?: (line: string) => void
  /** Ends the child and everything in its process group. */
  signal: AbortSignal
  /** Kills all of it at once, as a crash would; the child then has ended without an exit code. */
  crash?: AbortSignal | undefined
}

const KILL_AFTER_MS = 2_000

/** Signals a process group; one that is gone already is no error. */
const signalGroup = (pid: number, signal: NodeJS.Signals): void => {
  try {
    process.kill(-pid, signal)
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "ESRCH")) throw error
  }
}

/**
 * Runs a program in a process group of its own and waits for its end.
 *
 * @throws the signal's reason when it was aborted, or why the program could not be started
 */
export const runChild = (argv: readonly [string, ...string[]], options: ChildOptions): Promise<ChildResult> => {
  options.signal.throwIfAborted()
  const [program, ...args] = argv
  const child = spawn(program, args, { cwd: options.cwd, env: options.environment, detached: true })
  return new Promise((resolve, reject) => {
    let stdout = ""
    let stderr = ""
    let line = ""
    let killer: ReturnType<typeof setTimeout> | undefined
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      stdout += text
      const lines = (line + text).split("\n")
      line = lines.pop() ?? ""
      for (const complete of lines) options.onLine?.(complete)
    })
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      stderr += text
    })
    // A child that does not read its input closes the pipe early.
    child.stdin.on("error", () => undefined)
    child.stdin.end(options.stdin ?? "")
    const send = (signal: NodeJS.Signals): void => {
      if (child.pid !== undefined) signalGroup(child.pid, signal)
    }
    const kill = (): void => send("SIGKILL")
    const stop = (): void => {
      send("SIGTERM")
      killer = setTimeout(kill, KILL_AFTER_MS)
    }
    options.signal.addEventListener("abort", stop, { once: true })
    options.crash?.addEventListener("abort", kill, { once: true })
    child.on("error", reject)
    child.on("close", (exitCode) => {
      clearTimeout(killer)
      options.signal.removeEventListener("abort", stop)
      options.crash?.removeEventListener("abort", kill)
      if (options.signal.aborted) reject(options.signal.reason)
      else resolve({ exitCode, stdout, stderr })
    })
  })
}
