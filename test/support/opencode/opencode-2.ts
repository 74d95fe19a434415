import { spawn } from "node:child_process"
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import type { Script } from "../model/scripted-model.ts"
import { deadline } from "./deadline.ts"
import { openCode2 } from "./opencode-binary.ts"
import type { RunOptions, RunResult } from "./opencode-run.ts"
import { openTaskProject, type TaskProject } from "./task-project.ts"
import type { ProjectOptions, TestProject } from "./test-project.ts"
import { CONTEXT_TOKENS } from "./tokens-2.ts"

export { FULL_TOKENS, RESERVED_TOKENS } from "./tokens-2.ts"

const PASSWORD = "of-the-tests"

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
  const { run } = task
  return {
    ...task,
    runWell: async (message, ...args) => {
      const result = await run(message, { args })
      if (result.exitCode === 0) return result
      throw new Error(`opencode ${binary.version} run exited with ${result.exitCode}: ${result.stderr.slice(-800)}`)
    },
  }
}

type Answer = { readonly status: number; readonly data: unknown }

export type Server2 = {
  readonly pid: number
  api(method: string, path: string, body?: unknown): Promise<Answer>
  /** Sends a message to a new session or to this one, and waits for the turn. @returns the session's id */
  say(text: string, session?: string): Promise<string>
  /** Runs a command as the interface does. */
  command(session: string, name: string, text: string): Promise<void>
  /** OpenCode's list of plugins, those that failed among them. */
  plugins(): Promise<{ id: string; state: { status: string } }[]>
  [Symbol.asyncDispose](): Promise<void>
}

const START_DEADLINE_MS = 60_000

/** `opencode serve` in the project; `await using` stops it. */
export const openServer2 = (project: TestProject, environment: Record<string, string> = {}): Promise<Server2> =>
  new Promise((resolve, reject) => {
    const child = spawn(openCode2().path, ["serve", "--hostname", "127.0.0.1", "--port", "0"], {
      cwd: project.directory,
      env: { ...project.environment, OPENCODE_PASSWORD: PASSWORD, ...environment },
      stdio: ["ignore", "pipe", "pipe"],
    })
    const exited = new Promise<void>((done) => child.on("exit", () => done()))
    let output = ""
    const timer = setTimeout(() => {
      child.kill("SIGKILL")
      reject(new Error(`opencode serve did not start: ${output}`))
    }, deadline(START_DEADLINE_MS))
    const stop = async (): Promise<void> => {
      child.kill("SIGTERM")
      const killer = setTimeout(() => child.kill("SIGKILL"), deadline(5_000))
      await exited
      clearTimeout(killer)
    }
    const started = (url: string): void => {
      clearTimeout(timer)
      const authorization = `Basic ${Buffer.from(`opencode:${PASSWORD}`).toString("base64")}`
      const location = { directory: project.directory }
      const api = async (method: string, path: string, body?: unknown): Promise<Answer> => {
        const headers = { authorization, "content-type": "application/json" }
        const sent = body === undefined ? {} : { body: JSON.stringify(body) }
        const response = await fetch(`${url}/api${path}`, { method, headers, ...sent })
        const text = await response.text()
        if (!response.ok) throw new Error(`${method} ${path} answered ${response.status}: ${text.slice(0, 300)}`)
        return { status: response.status, data: text === "" ? undefined : JSON.parse(text) }
      }
      const wait = (session: string) => api("POST", `/experimental/session/${session}/wait`)
      const create = async (): Promise<string> => {
        const { data } = await api("POST", "/session", { location })
        return (data as { data: { id: string } }).data.id
      }
      resolve({
        pid: child.pid ?? -1,
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
          const query = `location[directory]=${encodeURIComponent(project.directory)}`
          const { data } = await api("GET", `/plugin?${query}`)
          return (data as { data: { id: string; state: { status: string } }[] }).data
        },
        [Symbol.asyncDispose]: stop,
      })
    }
    const read = (text: string): void => {
      output += text
      const url = /listening on (http:\/\/[\w.:]+)/.exec(output)?.[1]
      if (url) started(url)
    }
    child.stdout.setEncoding("utf8").on("data", read)
    child.stderr.setEncoding("utf8").on("data", read)
    child.on("error", reject)
  })

/** OpenCode 2's own log. */
export const openCodeLog2 = ({ environment }: TestProject): string => {
  const path = join(environment.XDG_DATA_HOME ?? "", "opencode", "log", "opencode.log")
  return existsSync(path) ? readFileSync(path, "utf8") : ""
}
