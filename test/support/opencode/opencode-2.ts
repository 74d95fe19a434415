import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import type { Script } from "../model/scripted-model.ts"
import { type Api2, createApi2, locationQuery } from "./client-2.ts"
import { openCode2 } from "./opencode-binary.ts"
import type { RunOptions, RunResult } from "./opencode-run.ts"
import { startServer } from "./opencode-server.ts"
import { openTaskProject, type TaskProject } from "./task-project.ts"
import type { ProjectOptions, TestProject } from "./test-project.ts"
import { CONTEXT_TOKENS } from "./tokens-2.ts"

export { FULL_TOKENS, RESERVED_TOKENS } from "./tokens-2.ts"

export type Task2 = Omit<TaskProject, "run" | "runWell"> & {
  /** `opencode run MESSAGE` in a process of its own, which ends with it. */
  run(message: string, options?: Omit<RunOptions, "binary" | "project">): Promise<RunResult>
  /** The same. @throws when the exit code is not 0 */
  runWell(message: string, ...args: string[]): Promise<RunResult>
}

/** A project with the bundle as the installer leaves it, a task and a scripted model, for OpenCode 2. */
export const openTask2 = async (script: Script, options: Partial<ProjectOptions> = {}): Promise<Task2> => {
  const binary = openCode2()
  const task = await openTaskProject(binary, script, { context: CONTEXT_TOKENS, output: 4_000, ...options })
  const run: Task2["run"] = (message, { args = [], ...rest } = {}) =>
    task.run(message, { ...rest, args: ["--auto", ...args] })
  return {
    ...task,
    run,
    runWell: async (message, ...args) => {
      const result = await run(message, { args })
      if (result.exitCode === 0) return result
      throw new Error(`opencode ${binary.version} run exited with ${result.exitCode}: ${result.stderr.slice(-800)}`)
    },
  }
}

export type Server2 = {
  readonly pid: number
  readonly api: Api2
  /** Sends a message to a new session or to this one, and waits for the turn. @returns the session's id */
  say(text: string, session?: string): Promise<string>
  /** Runs a command as the interface does. */
  command(session: string, name: string, text: string): Promise<void>
  /** OpenCode's list of plugins, those that failed among them. */
  plugins(): Promise<{ id: string; state: { status: string } }[]>
  [Symbol.asyncDispose](): Promise<void>
}

/** `opencode serve` in the project; `await using` stops it. */
export const openServer2 = async (project: TestProject, environment: Record<string, string> = {}): Promise<Server2> => {
  const server = await startServer(openCode2(), { ...project, environment: { ...project.environment, ...environment } })
  const api = createApi2(server.url)
  const wait = (session: string) => api("POST", `/experimental/session/${session}/wait`)
  const create = async (): Promise<string> => {
    const { data } = await api("POST", "/session", { location: { directory: project.directory } })
    return (data as { data: { id: string } }).data.id
  }
  return {
    pid: server.pid,
    api,
    say: async (text, session) => {
      const id = session ?? (await create())
      await api("POST", `/session/${id}/prompt`, { text })
      await wait(id)
      return id
    },
    command: async (session, name, text) => {
      await api("POST", `/session/${session}/command`, { name, text })
      await wait(session)
    },
    plugins: async () => {
      const { data } = await api("GET", `/plugin?${locationQuery(project.directory)}`)
      return (data as { data: { id: string; state: { status: string } }[] }).data
    },
    [Symbol.asyncDispose]: server.stop,
  }
}

/** Outside a git repository OpenCode prints its heading again after a compaction, or not, by chance (docs/opencode-notes.md). */
export const withOneHeading = (stderr: string): string => {
  const [before = "", ...after] = stderr.split("> build · model\n")
  return after.length === 0 ? stderr : `${before}> build · model\n${after.join("")}`
}

/** OpenCode 2's own log. */
export const openCodeLog2 = ({ environment }: TestProject): string => {
  const path = join(environment.XDG_DATA_HOME ?? "", "opencode", "log", "opencode.log")
  return existsSync(path) ? readFileSync(path, "utf8") : ""
}
