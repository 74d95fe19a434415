import { type ChildProcess, spawn } from "node:child_process"
import { createInterface } from "node:readline"
import { childEnvironment } from "../host/process.ts"
import { count, field, text, tokensIn } from "../host/schema.ts"
import { cutTextStart } from "../host/text.ts"
import { NOTHING_SEEN, type Seen } from "./judge.ts"
import { RUN_MARK, WORKER_MARK } from "./processes.ts"

// One `opencode run` and what it prints (`--format json`, one event a line).

export type AgentOptions = {
  /** The OpenCode binary. */
  readonly opencode: string
  readonly directory: string
  readonly message: string
  /** The session that goes on; a new one when absent. */
  readonly session?: string | undefined
  readonly args: readonly string[]
  /** The mark of all its processes: the task and the number of its run. */
  readonly mark: string
  readonly workerID: string
  /** The name that its session claims under. */
  readonly holder: string
  readonly environment?: Readonly<Record<string, string>>
  /** Called at each sign of progress: words, a tool, the end of a step. */
  readonly onProgress?: () => void
}

export type Agent = {
  /** Of the process that was started; undefined when it could not be. */
  readonly pid: number | undefined
  readonly seen: () => Seen
  /** Its newest words or tool, in one line. */
  readonly last: () => string
  readonly steps: () => number
  readonly isAlive: () => boolean
  /** A moment after the exit, with what it printed last. */
  readonly exited: Promise<{ readonly exitCode: number | null; readonly signal: string | null }>
}

const errorOf = (event: unknown): Seen["error"] => {
  const error = field(event, "error")
  const status = field(error, "data", "statusCode") ?? field(error, "status")
  return {
    name: text(field(error, "name")) ?? text(field(error, "type")) ?? "error",
    message: text(field(error, "data", "message")) ?? text(field(error, "message")) ?? "",
    status: typeof status === "number" ? status : 0,
  }
}

const parse = (line: string): unknown => {
  try {
    return JSON.parse(line)
  } catch {
    // OpenCode prints other lines, too.
    return undefined
  }
}

const COMPLAINT_CHARACTERS = 2_000

/** Bun's own settings are those of this program, not of the agent's. */
const NOT_PASSED_ON = {
  BUN_BE_BUN: undefined,
  BUN_RUNTIME_TRANSPILER_CACHE_PATH: undefined,
  ELECTRON_RUN_AS_NODE: undefined,
}

const start = ({ opencode, session, args, directory, environment, ...options }: AgentOptions): ChildProcess =>
  // In a process group of its own: Ctrl-C in the terminal is for this program, which lets agents come to an end.
  spawn(opencode, ["run", "--format", "json", ...(session === undefined ? [] : ["--session", session]), ...args], {
    cwd: directory,
    detached: true,
    stdio: ["pipe", "pipe", "pipe"],
    env: childEnvironment({
      ...NOT_PASSED_ON,
      PWD: directory,
      [RUN_MARK]: options.mark,
      [WORKER_MARK]: options.workerID,
      BATON_HOLDER: options.holder,
      ...environment,
    }),
  })

/** `step_start` is none: OpenCode 2 prints it again and again while a provider fails. */
const PROGRESS: ReadonlySet<string> = new Set(["text", "tool_use", "step_finish"])

/** Starts an agent. The message goes by standard input, which OpenCode takes as it is. */
export const startAgent = (options: AgentOptions): Agent => {
  const child = start(options)
  let seen = NOTHING_SEEN
  let last = ""
  let steps = 0
  let isAlive = true
  const heard = (event: unknown): void => {
    const part = field(event, "part")
    seen = { ...seen, session: text(field(event, "sessionID")) ?? seen.session }
    const type = field(event, "type")
    if (type === "text") {
      const words = text(field(part, "text")) ?? ""
      seen = { ...seen, words, error: undefined }
      last = words.trim().split("\n").at(-1) ?? ""
    }
    if (type === "tool_use") {
      seen = { ...seen, tools: seen.tools + 1, error: undefined }
      const title = text(field(part, "state", "title")) ?? text(field(part, "state", "input", "command")) ?? ""
      last = [text(field(part, "tool")) ?? "tool", title].filter((word) => word !== "").join(": ")
    }
    if (type === "step_finish") {
      steps++
      seen = { ...seen, tokens: seen.tokens + tokensIn(part), cost: seen.cost + count(field(part, "cost")) }
    }
    if (type === "error") {
      seen = { ...seen, error: errorOf(event) }
      last = seen.error?.message ?? ""
    }
    if (PROGRESS.has(String(type))) options.onProgress?.()
  }
  if (child.stdout) createInterface({ input: child.stdout }).on("line", (line) => heard(parse(line)))
  child.stderr?.on("data", (data: Buffer) => {
    seen = { ...seen, complaint: cutTextStart(seen.complaint + data.toString(), COMPLAINT_CHARACTERS) }
  })
  child.stdin?.on("error", () => {})
  child.stdin?.end(options.message)
  const exited = new Promise<Awaited<Agent["exited"]>>((resolve) => {
    child.on("error", (error) => {
      isAlive = false
      seen = { ...seen, complaint: error.message }
      resolve({ exitCode: 127, signal: null })
    })
    // A shell that an agent leaves keeps its standard output open: the exit counts, and what is on its way a moment later.
    child.on("exit", (exitCode, signal) => {
      isAlive = false
      const done = (): void => resolve({ exitCode, signal })
      child.on("close", done)
      setTimeout(done, CLOSE_MS)
    })
  })
  return { pid: child.pid, seen: () => seen, last: () => last, steps: () => steps, isAlive: () => isAlive, exited }
}

const CLOSE_MS = 500
