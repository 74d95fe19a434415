import { type ChildProcess, spawn } from "node:child_process"
import type { Core } from "../core/core.ts"
import { describeError, type Log } from "../host/log.ts"
import type { Argv } from "../host/process.ts"
import { cutText } from "../host/text.ts"
import { childEnvironment } from "../host/untrusted.ts"
import { readC2c } from "./c2c/identity.ts"
import type { C2cSession } from "./c2c/session.ts"
import type { StreamLine } from "./protocol.ts"
import type { Publisher } from "./publisher.ts"
import type { StateWriter } from "./statefile.ts"

/** A JSON array of program and arguments; it overrides the account's settings. */
export const WRITER_VARIABLE = "BATON_STATE_WRITER"

type ChosenWriter =
  | { readonly kind: "foreign"; readonly argv: Argv }
  | { readonly kind: "own" }
  | { readonly kind: "none"; readonly reason: string }

const parseArgv = (text: string): Argv | undefined => {
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

/** Chooses what gets the stream: the program of the variable, of the account's settings, c2c. Baton keeps its own statefile anyway. */
export const chooseWriter = ({
  variable,
  setting,
  c2c,
}: {
  variable: string | undefined
  /** Of the account's settings. */
  setting: Argv | undefined
  /** Absolute path of c2c, if this OpenCode is one of its sessions; see c2c/identity.ts. */
  c2c: string | undefined
}): ChosenWriter => {
  if (variable) {
    const argv = parseArgv(variable)
    if (argv) return { kind: "foreign", argv }
    const expected = `expected a JSON array of program and arguments, received ${JSON.stringify(cutText(variable, 80))}`
    return { kind: "none", reason: `${WRITER_VARIABLE}: ${expected}` }
  }
  if (setting) return { kind: "foreign", argv: setting }
  return c2c === undefined ? { kind: "own" } : { kind: "foreign", argv: [c2c, "oc-plugin", "stream-write-statefile"] }
}

type FoundWriter = {
  /** Absent: none beside Baton's own statefile. */
  foreign?: { readonly program: string; start(snapshot: () => StreamLine): StateWriter }
  openC2c?: (sessions: Pick<Publisher, "root" | "topOf">) => C2cSession
}

/**
 * Finds the writer where it may be another than Baton's own, and c2c's session; logs why one is not used.
 *
 * @param setting the writer of the account's settings
 */
export const findWriter = async (
  { input, projectRoot, services }: Core,
  setting: Argv | undefined,
  log: Log,
): Promise<FoundWriter> => {
  const { env } = process
  const { directory } = input
  const c2c = await readC2c({ environment: env, folders: [directory, projectRoot] })
  if (c2c.kind === "own-plugin") log.info("c2c's own plugin is there: Baton runs no c2c here", { path: c2c.path })
  const identity = c2c.kind === "session" ? c2c : undefined
  const chosen = chooseWriter({
    variable: env[WRITER_VARIABLE],
    setting,
    c2c: identity?.program,
  })
  if (chosen.kind === "none") {
    log.warn("no state writer but Baton's own", { reason: chosen.reason })
    return {}
  }
  const found: FoundWriter = {}
  if (identity) {
    const [{ openC2cSession }, loaded] = await Promise.all([import("./c2c/session.ts"), services()])
    found.openC2c = ({ root, topOf }) =>
      openC2cSession({ c2c: identity, input, services: loaded, environment: env, root, topOf, log })
  }
  if (chosen.kind === "foreign") {
    const { argv } = chosen
    const start = (snapshot: () => StreamLine) => createStreamWriter({ argv, directory, snapshot, log })
    found.foreign = { program: argv[0], start }
  }
  return found
}

type StreamWriterDeps = {
  argv: Argv
  directory: string
  /** The whole state, for a writer that starts or has missed lines. */
  snapshot: () => StreamLine
  log: Log
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
 * Runs a long-lived child process that reads JSON lines, from the first line on. Each start of it begins with a snapshot. While
 * it does not read, no lines are kept: it gets the newest state as a snapshot once it reads again.
 */
export const createStreamWriter = (deps: StreamWriterDeps): StateWriter => {
  const { argv, directory, snapshot, log } = deps
  const { firstRestartMs = FIRST_RESTART_MS, longestRestartMs = LONGEST_RESTART_MS, settledMs = SETTLED_MS } = deps
  let child: ChildProcess | undefined
  let isBackpressured = false
  let isStale = false
  let failures = 0
  let startedAt = 0
  let restart: NodeJS.Timeout | undefined
  let isOver = false
  let complaints = 0

  const write = (line: StreamLine): void => {
    const stdin = child?.stdin
    if (!stdin?.writable) return
    isBackpressured = !stdin.write(`${JSON.stringify(line)}\n`)
  }

  const resync = (): void => {
    isBackpressured = false
    if (!isStale) return
    isStale = false
    write(snapshot())
  }

  const ended = (from: ChildProcess, reason: string, canRestart: boolean): void => {
    if (child !== from) return
    child = undefined
    if (isOver) return
    failures = performance.now() - startedAt > settledMs ? 1 : failures + 1
    if (!canRestart) {
      isOver = true
      log.warn("the state writer cannot be started: nothing gets the stream until OpenCode starts again", { reason })
      return
    }
    const waitMs = Math.min(firstRestartMs * 2 ** (failures - 1), longestRestartMs)
    log.warn("the state writer ended and is started again", { reason, waitMs })
    restart = setTimeout(start, waitMs)
    restart.unref()
  }

  const complain = (chunk: Buffer): void => {
    if (complaints++ < SHOWN_COMPLAINTS)
      log.warn("the state writer says", { text: cutText(chunk.toString("utf8").trim(), COMPLAINT_CHARACTERS) })
  }

  const start = (): void => {
    restart = undefined
    const [file, ...args] = argv
    startedAt = performance.now()
    let started: ChildProcess
    try {
      started = spawn(file, args, {
        cwd: directory,
        env: childEnvironment({}),
        stdio: ["pipe", "ignore", "pipe"],
        windowsHide: true,
      })
    } catch (error) {
      isOver = true
      log.warn("the state writer cannot be started", { reason: describeError(error) })
      return
    }
    child = started
    isBackpressured = false
    isStale = false
    // A broken pipe is reported here, later; without a listener it would end OpenCode.
    started.stdin?.on("error", (error) =>
      log.debug("the state writer's stdin failed", { reason: describeError(error) }),
    )
    started.stdin?.on("drain", resync)
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
      if (!child || isBackpressured) isStale = true
      else write(line)
    },
    stop: async (graceMs) => {
      isOver = true
      clearTimeout(restart)
      const last = child
      if (!last) return
      if (isStale && !isBackpressured) write(snapshot())
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
        last.stdin?.end()
      })
    },
  }
}
