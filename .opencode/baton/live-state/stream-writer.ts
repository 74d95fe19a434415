import { type ChildProcess, spawn } from "node:child_process"
import { describeError, type Log } from "../host/log.ts"
import type { StreamLine } from "./protocol.ts"

/** A JSON array of program and arguments; it overrides the settings. */
export const WRITER_VARIABLE = "BATON_STATE_WRITER"

type ChosenWriter =
  | { readonly kind: "foreign" | "embedded"; readonly command: WriterCommand }
  | { readonly kind: "none"; readonly reason: string }

const parseArgv = (text: string): readonly [string, ...string[]] | undefined => {
  try {
    const value: unknown = JSON.parse(text)
    if (!Array.isArray(value) || !value.every((each): each is string => typeof each === "string")) return undefined
    const [program, ...args] = value
    return program ? [program, ...args] : undefined
  } catch (error) {
    if (error instanceof SyntaxError) return undefined
    throw error
  }
}

/**
 * Chooses the program that writes the statefile: from the variable, the settings, c2c on PATH, else the embedded one run by
 * OpenCode's own binary, so that no Bun is needed.
 */
export const chooseWriter = ({
  variable,
  setting,
  c2c,
  runtime,
  script,
  directory,
}: {
  variable: string | undefined
  setting: readonly string[] | undefined
  /** Absolute path of c2c on PATH. */
  c2c: string | undefined
  /** OpenCode's binary if it can act as Bun; undefined on Desktop. */
  runtime: string | undefined
  /** Absolute path of state-writer.ts. */
  script: string
  /** The statefile goes to this folder's `.opencode/state/live`. */
  directory: string
}): ChosenWriter => {
  if (variable) {
    const argv = parseArgv(variable)
    if (argv) return { kind: "foreign", command: { argv } }
    const expected = `expected a JSON array of program and arguments, received ${JSON.stringify(variable.slice(0, 80))}`
    return { kind: "none", reason: `${WRITER_VARIABLE}: ${expected}` }
  }
  const [program, ...args] = setting ?? []
  if (program !== undefined) return { kind: "foreign", command: { argv: [program, ...args] } }
  if (c2c !== undefined) return { kind: "foreign", command: { argv: [c2c, "oc-plugin", "stream-write-statefile"] } }
  if (runtime === undefined) return { kind: "none", reason: "this host has no runtime for the embedded state writer" }
  const argv = [runtime, "--no-env-file", "--config=/dev/null", "run", "--no-install", script, directory] as const
  const env = { BUN_BE_BUN: "1", BUN_RUNTIME_TRANSPILER_CACHE_PATH: "0", DO_NOT_TRACK: "1" }
  return { kind: "embedded", command: { argv, env } }
}

export type WriterCommand = {
  readonly argv: readonly [string, ...string[]]
  readonly env?: Readonly<Record<string, string>>
}

export type StreamWriter = {
  /** Never throws and never waits. When the writer cannot take the line now, a later snapshot replaces it. */
  publish(line: StreamLine): void
  /** Closes the writer's stdin, and ends the writer when it has not read or not exited after `graceMs`. */
  stop(graceMs: number): Promise<void>
}

type StreamWriterDeps = {
  command: WriterCommand
  directory: string
  /** The whole state, for a writer that starts or has missed lines. */
  snapshot: () => StreamLine
  log: Log
  /** The writer is known to exit when its stdin ends, so stopping need not wait for that. */
  endsByItself?: boolean
  firstRestartMs?: number
  longestRestartMs?: number
  /** A writer that ran this long had no trouble starting. */
  settledMs?: number
}

const FIRST_RESTART_MS = 1_000
const LONGEST_RESTART_MS = 60_000
const SETTLED_MS = 30_000
const SHOWN_COMPLAINTS = 5
const COMPLAINT_CHARACTERS = 500

/**
 * Runs a long-lived child process that reads JSON lines. Each start of it begins with a snapshot. While it does not read, no
 * lines are kept: it gets the newest state as a snapshot once it reads again.
 */
export const createStreamWriter = (deps: StreamWriterDeps): StreamWriter => {
  const { command, directory, snapshot, log, endsByItself = false } = deps
  const { firstRestartMs = FIRST_RESTART_MS, longestRestartMs = LONGEST_RESTART_MS, settledMs = SETTLED_MS } = deps
  let child: ChildProcess | undefined
  let isFull = false
  let hasMissed = false
  let failures = 0
  let startedAt = 0
  let restart: NodeJS.Timeout | undefined
  let isOver = false
  let complaints = 0

  const write = (line: StreamLine): void => {
    const stdin = child?.stdin
    if (!stdin?.writable) return
    isFull = !stdin.write(`${JSON.stringify(line)}\n`)
  }

  const catchUp = (): void => {
    isFull = false
    if (!hasMissed) return
    hasMissed = false
    write(snapshot())
  }

  const ended = (from: ChildProcess, reason: string, canRestart: boolean): void => {
    if (child !== from) return
    child = undefined
    if (isOver) return
    failures = performance.now() - startedAt > settledMs ? 1 : failures + 1
    if (!canRestart) {
      isOver = true
      log.warn("the state writer cannot be started: no live state until OpenCode starts again", { reason })
      return
    }
    const waitMs = Math.min(firstRestartMs * 2 ** (failures - 1), longestRestartMs)
    log.warn("the state writer ended and is started again", { reason, waitMs })
    restart = setTimeout(start, waitMs)
    restart.unref()
  }

  const complain = (chunk: Buffer): void => {
    if (complaints++ < SHOWN_COMPLAINTS)
      log.warn("the state writer says", { text: chunk.toString("utf8").trim().slice(0, COMPLAINT_CHARACTERS) })
  }

  const start = (): void => {
    restart = undefined
    const [file, ...args] = command.argv
    startedAt = performance.now()
    let started: ChildProcess
    try {
      started = spawn(file, args, {
        cwd: directory,
        env: { ...process.env, ...command.env },
        stdio: ["pipe", "ignore", "pipe"],
        windowsHide: true,
      })
    } catch (error) {
      isOver = true
      log.warn("the state writer cannot be started", { reason: describeError(error) })
      return
    }
    child = started
    isFull = false
    hasMissed = false
    // A broken pipe is reported here, later; without a listener it would end OpenCode.
    started.stdin?.on("error", (error) =>
      log.debug("the state writer's stdin failed", { reason: describeError(error) }),
    )
    started.stdin?.on("drain", catchUp)
    started.stderr?.on("error", () => {})
    started.stderr?.on("data", complain)
    started.on("error", (error) =>
      ended(started, describeError(error), (error as NodeJS.ErrnoException).code !== "ENOENT"),
    )
    started.on("exit", (code, signal) => ended(started, `exit ${code ?? signal}`, true))
    // OpenCode exits without waiting for it.
    started.unref()
    for (const stream of [started.stdin, started.stderr]) (stream as { unref?: () => void } | null)?.unref?.()
    write(snapshot())
  }

  return {
    publish: (line) => {
      if (isOver) return
      if (!child && !restart) return start()
      if (!child || isFull) hasMissed = true
      else write(line)
    },
    stop: async (graceMs) => {
      isOver = true
      clearTimeout(restart)
      const last = child
      if (!last) return
      if (hasMissed && !isFull) write(snapshot())
      await new Promise<void>((resolve) => {
        const timer = setTimeout(() => {
          last.kill("SIGKILL")
          resolve()
        }, graceMs)
        const done = (): void => {
          clearTimeout(timer)
          resolve()
        }
        last.once("exit", done)
        last.stdin?.end(endsByItself ? done : undefined)
      })
    },
  }
}
