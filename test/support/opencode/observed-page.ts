import { type ChildProcess, spawn } from "node:child_process"
import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { collectOutput } from "../collect-output.ts"
import { endWithTest } from "../files/end-with-test.ts"
import { temporaryFolder } from "../files/temporary-folder.ts"
import { type OpenCodeBinary, REPOSITORY } from "./opencode-binary.ts"
import { eventually } from "./opencode-server.ts"
import { copyBundle } from "./test-project.ts"

type Start = { binary: OpenCodeBinary; cwd: string; args?: readonly string[]; environment: NodeJS.ProcessEnv }

/** Starts it with the launcher of the project's bundle; it ends with the test. */
export const startBatonObserve = ({ binary, cwd, args = [], environment }: Start): ChildProcess => {
  const child = spawn(join(cwd, ".opencode/baton/bin/baton"), ["observe", "--web", ...args], {
    cwd,
    env: { ...environment, BATON_OPENCODE: binary.path },
    stdio: ["ignore", "pipe", "pipe"],
  })
  return endWithTest(child)
}

/** `baton observe --web` in its own process; resolves when it has printed its address. */
export const observePage = async (start: Start) => {
  const child = startBatonObserve(start)
  const ended = new Promise<number | null>((resolve) => child.on("exit", resolve))
  const printed = collectOutput(child)
  const url = await eventually("the page's address", () => /http:\/\/127\.0\.0\.1:\d+\//.exec(printed.stdout())?.[0])
  return {
    url,
    port: Number(new URL(url).port),
    pid: child.pid ?? -1,
    stderr: printed.stderr,
    /** Resolves with the exit code, null after a signal that it did not catch. */
    ended,
    kill: (signal: NodeJS.Signals) => void child.kill(signal),
  }
}

/** A project with the bundle and without OpenCode: the test writes its statefiles. */
export const createStatefileFolder = () => {
  const project = temporaryFolder()
  copyBundle(join(project, ".opencode"), undefined)
  symlinkSync(join(REPOSITORY, "node_modules"), join(project, ".opencode", "node_modules"))
  const folder = join(project, ".opencode", "state", "live")
  mkdirSync(folder, { recursive: true })
  const path = (name: string): string => join(folder, `${name}.json`)
  return {
    project,
    environment: { PATH: process.env.PATH, HOME: project, TMPDIR: project, BATON_LEDGER: "embedded" },
    /** Writes a statefile as the writer does: complete, by rename. */
    write: (name: string, state: Record<string, unknown> = {}) => {
      const whole = {
        c2c_session_id: name,
        c2c_alias: null,
        root_opencode_session_id: `ses_${name}`,
        opencode_pid: process.pid,
        plugin_started_at: "2026-01-01T00:00:00.000Z",
        agent: { is_idle: false, turn_count: 0, last_step: null },
        ...state,
      }
      const ts = new Date().toISOString()
      writeFileSync(`${path(name)}.tmp`, JSON.stringify({ event: "state.snapshot", ts, state: whole }))
      renameSync(`${path(name)}.tmp`, path(name))
    },
    remove: (name: string) => rmSync(path(name)),
  }
}
