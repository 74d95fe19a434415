import { spawn } from "node:child_process"
import { mkdirSync, renameSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { collectOutput } from "../collect-output.ts"
import { eventually } from "./opencode-server.ts"
import type { TestProject } from "./test-project.ts"

/** `baton observe --web` in its own process, by the launcher of the project's bundle. */
export const startObserver = (project: Pick<TestProject, "directory" | "environment">, ...args: readonly string[]) => {
  const { directory: cwd, environment: env } = project
  const stdio: ["ignore", "pipe", "pipe"] = ["ignore", "pipe", "pipe"]
  const child = spawn(join(cwd, ".opencode/baton/bin/baton"), ["observe", "--web", ...args], { cwd, env, stdio })
  /** Resolves with the exit code, null after a signal that it did not catch. */
  const ended = new Promise<number | null>((resolve) => child.on("close", resolve))
  const { stdout, stderr } = collectOutput(child)
  return {
    child,
    pid: child.pid ?? -1,
    stderr,
    ended,
    /** Resolves when it has printed its address. */
    address: () =>
      eventually("the page's address", () => /http:\/\/127\.0\.0\.1:\d+\/#[0-9a-f]{64}/.exec(stdout())?.[0]),
    kill: (signal: NodeJS.Signals) => void child.kill(signal),
    /** Ends it like Ctrl-C. @returns its exit code */
    stop: (): Promise<number | null> => {
      child.kill("SIGINT")
      return ended
    },
  }
}

/** Writes a statefile as the writer does: complete, by rename. */
export const writeStatefile = (folder: string, name: string, state: object = {}, ts = new Date().toISOString()) => {
  const whole = {
    c2c_session_id: name,
    c2c_alias: null,
    root_opencode_session_id: `ses_${name}`,
    opencode_pid: process.pid,
    plugin_started_at: "2026-01-01T00:00:00.000Z",
    agent: { is_idle: false, turn_count: 0, last_step: null },
    ...state,
  }
  const path = join(folder, `${name}.json`)
  mkdirSync(folder, { recursive: true })
  writeFileSync(`${path}.tmp`, `${JSON.stringify({ event: "state.snapshot", ts, state: whole })}\n`, { mode: 0o600 })
  renameSync(`${path}.tmp`, path)
}
