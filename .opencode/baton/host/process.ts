import { type ChildProcessByStdio, spawn, spawnSync } from "node:child_process"
import { accessSync, constants, statSync } from "node:fs"
import { devNull, constants as system } from "node:os"
import { delimiter, isAbsolute, join } from "node:path"
import type { Readable, Writable } from "node:stream"
import type { PluginInput } from "@opencode-ai/plugin"
import { withDeadline } from "./async.ts"
import { describeError, errorCode } from "./log.ts"

/** The environment of a child: its PATH has no relative folders, from which it would run files of the project. */
export const childEnvironment = (
  changes: Readonly<Record<string, string | undefined>> | undefined,
): Record<string, string> => {
  const merged = Object.entries({ ...process.env, ...changes })
  const given = Object.fromEntries(merged.filter((pair): pair is [string, string] => pair[1] !== undefined))
  const folders = given.PATH?.split(delimiter).filter(isAbsolute)
  // An empty PATH would mean the working directory.
  return folders === undefined ? given : { ...given, PATH: folders.join(delimiter) || devNull }
}

export const isExecutableFile = (path: string): boolean => {
  try {
    if (!statSync(path, { throwIfNoEntry: false })?.isFile()) return false
    accessSync(path, constants.X_OK)
    return true
  } catch {
    // Not permitted: the search along PATH goes on.
    return false
  }
}

/**
 * @param path the value of PATH
 * @returns all executable files of that name, in PATH's order; relative folders are skipped, since they would run files of
 *   the project
 */
export const findExecutables = (name: string, path: string | undefined): readonly string[] => {
  const folders = (path ?? "").split(delimiter).filter(isAbsolute)
  return [...new Set(folders)].map((folder) => join(folder, name)).filter(isExecutableFile)
}

/** A program and its arguments, which are passed on byte for byte. */
export type Argv = readonly [string, ...string[]]

export type RunOptions = {
  /** Absolute path the program runs in. */
  readonly cwd: string
  /** Milliseconds from the call until the program and its children are killed. */
  readonly deadlineMs: number
  /** The program's stdin, empty by default. The host's own stdin is never passed on. */
  readonly stdin?: string
  /** Added to the host's environment for this child alone; `undefined` removes a variable. */
  readonly env?: Readonly<Record<string, string | undefined>>
  /** Bytes kept of stdout and of stderr, each; a program that writes more is cut off. */
  readonly maxOutputBytes?: number
}

export type ProcessOutcome =
  /** A program ended by a signal has the exit code 128 + signal, as in a shell. */
  | { readonly kind: "exited"; readonly exitCode: number; readonly stdout: string; readonly stderr: string }
  /** The program was killed at the deadline; its work may be done. `leftBehind` says why it could not be killed. */
  | { readonly kind: "timed-out"; readonly deadlineMs: number; readonly leftBehind?: string }
  /** The program did not run: not found, not executable, a bad working directory, arguments the system refuses. */
  | { readonly kind: "not-started"; readonly cause: string }

/** Runs one program to its end. Never throws, never prints, never inherits stdio. */
export type RunProcess = (argv: Argv, options: RunOptions) => Promise<ProcessOutcome>

/** 4 MB per stream: far more than a ledger prints for one task, and harmless for the host. */
const MAX_OUTPUT_BYTES = 4 * 1024 * 1024

/**
 * Sends a signal to a process, or with a negative id to a process group. A missing one is no error.
 *
 * @throws EPERM and the like
 */
export const signalIfThere = (pid: number, signal: "SIGKILL"): void => {
  try {
    process.kill(pid, signal)
  } catch (error) {
    if (errorCode(error) !== "ESRCH") throw error
  }
}

/** The exit code; for a signal that of a shell. A null code never counts as success. */
const exitCodeOf = (code: number | null, signal: NodeJS.Signals | null): number =>
  code ?? 128 + (signal ? system.signals[signal] : 0)

const collect = (stream: Readable, limit: number): (() => string) => {
  const chunks: Buffer[] = []
  let size = 0
  stream.on("error", () => {})
  stream.on("data", (chunk: Buffer) => {
    chunks.push(chunk.subarray(0, limit - size))
    size += chunk.length
    if (size >= limit) stream.destroy()
  })
  return () => Buffer.concat(chunks).toString()
}

type Child = ChildProcessByStdio<Writable | null, Readable, Readable>

/** Kills the program. @returns the reason if that fails */
const kill = (child: Child, platform: NodeJS.Platform): string | undefined => {
  // After the exit was collected, its pid may belong to another process.
  const waitedFor = child.exitCode !== null || child.signalCode !== null
  try {
    if (waitedFor || child.pid === undefined) return undefined
    if (platform === "win32") child.kill("SIGKILL")
    // It has its own process group, so its children end with it.
    else signalIfThere(-child.pid, "SIGKILL")
    return undefined
  } catch (error) {
    return describeError(error)
  } finally {
    child.stdin?.destroy()
    child.stdout.destroy()
    child.stderr.destroy()
  }
}

/** The runner on node:child_process: for all programs but prog, and for prog where there is no `$` or `timeout`. One argument may be 131,071 bytes long on Linux. */
const createNodeRunner =
  ({ platform }: { platform: NodeJS.Platform }): RunProcess =>
  (argv, { cwd, deadlineMs, stdin, env, maxOutputBytes = MAX_OUTPUT_BYTES }) =>
    new Promise((resolve) => {
      const [file, ...args] = argv
      const fail = (error: unknown) =>
        resolve({ kind: "not-started", cause: `${file} in ${cwd}: ${describeError(error)}` })
      try {
        const child = spawn(file, args, {
          cwd,
          env: childEnvironment(env),
          stdio: [stdin === undefined ? "ignore" : "pipe", "pipe", "pipe"],
          detached: platform !== "win32",
          windowsHide: true,
        }) as Child
        const stdout = collect(child.stdout, maxOutputBytes)
        const stderr = collect(child.stderr, maxOutputBytes)
        const timer = setTimeout(() => {
          const leftBehind = kill(child, platform)
          resolve({ kind: "timed-out", deadlineMs, ...(leftBehind === undefined ? {} : { leftBehind }) })
        }, deadlineMs)
        timer.unref()
        child.once("error", (error) => {
          clearTimeout(timer)
          fail(error)
        })
        child.once("close", (code, signal) => {
          clearTimeout(timer)
          resolve({ kind: "exited", exitCode: exitCodeOf(code, signal), stdout: stdout(), stderr: stderr() })
        })
        // The program may end before it has read its stdin.
        child.stdin?.on("error", () => {})
        child.stdin?.end(stdin)
      } catch (error) {
        fail(error)
      }
    })

type Shell = PluginInput["$"]

const NOT_STARTED = "baton: not started"

/**
 * Runs its arguments after the first two and limits their output, since `$` keeps all of it in memory.
 *
 * `timeout` kills the program and its process group, even after the host has ended; `$` cannot. The exit code comes back
 * through descriptor 5; stdout uses 3 and stderr 4, each behind a `head`. Arguments start with `=`, because Bun 1.3.10 drops
 * empty ones.
 */
const BOUNDED_RUN = [
  "bytes=${1#=}; seconds=${2#=}; shift 2;",
  'for a do shift; set -- "$@" "${a#=}"; done;',
  'case $1 in */*) [ -f "$1" ] && [ -x "$1" ];; *) command -v "$1" >/dev/null 2>&1;; esac',
  '|| { printf %s "$0" >&2; exit 127; };',
  "exec 3>&1 4>&2;",
  'status=$({ { { timeout -s KILL "$seconds" "$@" 3>&- 4>&- 5>&- 6>&-; echo $? >&5; } 2>&6 | head -c "$bytes" >&3; } 6>&1',
  '| head -c "$bytes" >&4; } 5>&1);',
  'exit "$status"',
].join(" ")

const readOutcome = (argv: Argv, output: { exitCode: number; stdout: Buffer; stderr: Buffer }): ProcessOutcome => {
  const stderr = output.stderr.toString()
  if (output.exitCode === 127 && stderr === NOT_STARTED) {
    return { kind: "not-started", cause: `${argv[0]} is not an executable file and not on PATH` }
  }
  // The shell itself could not be started, for example because an argument is too long.
  if (output.exitCode === 1 && output.stdout.length === 0 && stderr.startsWith("bun: ")) {
    return { kind: "not-started", cause: stderr.trim() }
  }
  return { kind: "exited", exitCode: output.exitCode, stdout: output.stdout.toString(), stderr }
}

/** The runner on Bun's `$`, for systems with `timeout`. One argument may be 131,070 bytes long on Linux. */
const createShellRunner =
  (shell: Shell): RunProcess =>
  async (argv, { cwd, deadlineMs, stdin, env, maxOutputBytes = MAX_OUTPUT_BYTES }) => {
    // One second longer than this process waits, so that this process reports the timeout.
    const numbers = [maxOutputBytes, Math.ceil(deadlineMs / 1000) + 1].map(String)
    const command = ["/bin/sh", "-c", BOUNDED_RUN, NOT_STARTED, ...[...numbers, ...argv].map((text) => `=${text}`)]
    const call = async (): Promise<ProcessOutcome> => {
      const started = stdin === undefined ? shell`${command} < /dev/null` : shell`${command} < ${Buffer.from(stdin)}`
      return readOutcome(argv, await started.cwd(cwd).env(childEnvironment(env)).quiet().nothrow())
    }
    const ended = await withDeadline(call(), deadlineMs)
    switch (ended.kind) {
      case "done":
        return ended.value
      case "late":
        return { kind: "timed-out", deadlineMs }
      case "failed":
        return { kind: "not-started", cause: `${argv[0]} in ${cwd}: ${describeError(ended.error)}` }
    }
  }

/** Bun's options for a program of its own: the project's .env, bunfig.toml and tsconfig.json may name code. A folder stands for no tsconfig.json. */
export const aloneInBun = (platform: NodeJS.Platform = process.platform): readonly string[] => {
  const [nowhere, folder] = platform === "win32" ? ["NUL", "C:\\Windows"] : ["/dev/null", "/dev"]
  return ["--no-env-file", `--config=${nowhere}`, `--tsconfig-override=${folder}`]
}

/** Runs a text of JavaScript in a process of its own, by the program that this one runs on; the project sets nothing up for it. */
export const runScript = (
  run: RunProcess,
  source: string,
  options: Omit<RunOptions, "env">,
): Promise<ProcessOutcome> => {
  const settings = process.versions.bun === undefined ? [] : aloneInBun()
  const env = { BUN_BE_BUN: "1", ELECTRON_RUN_AS_NODE: "1" }
  return run([process.execPath, ...settings, "-e", source], { ...options, env })
}

/** Runs one program to its end before it returns: for the last moment of a process. Never throws. */
export const runProgramSync = (
  [file, ...args]: Argv,
  { cwd, deadlineMs, env }: Pick<RunOptions, "cwd" | "deadlineMs" | "env">,
): ProcessOutcome => {
  const { status, signal, stdout, stderr, error } = spawnSync(file, args, {
    cwd,
    env: childEnvironment(env),
    encoding: "utf8",
    stdio: ["ignore", "pipe", "pipe"],
    timeout: deadlineMs,
    killSignal: "SIGKILL",
  })
  if (errorCode(error) === "ETIMEDOUT") return { kind: "timed-out", deadlineMs }
  if (error) return { kind: "not-started", cause: `${file} in ${cwd}: ${describeError(error)}` }
  return { kind: "exited", exitCode: exitCodeOf(status, signal), stdout, stderr }
}

type ProcessRunnerDeps = {
  /** Bun's `$` for prog, where the host has it; undefined for all other programs. */
  readonly shell: PluginInput["$"] | undefined
  readonly platform?: NodeJS.Platform
}

/** Creates the process runner for this host: Bun's `$` if it and `timeout` exist, else node:child_process. */
export const createProcessRunner = ({ shell, platform = process.platform }: ProcessRunnerDeps): RunProcess => {
  const node = createNodeRunner({ platform })
  const choose = (): RunProcess => {
    const hasTimeout = shell && platform !== "win32" && findExecutables("timeout", process.env.PATH).length > 0
    return hasTimeout ? createShellRunner(shell) : node
  }
  let chosen: RunProcess | undefined
  return async (argv, options) => {
    const unsendable = argv.findIndex((argument) => argument.includes("\0"))
    if (unsendable >= 0) {
      const cause = `argument ${unsendable} of ${argv[0]} contains a NUL character, which no program can receive`
      return { kind: "not-started", cause }
    }
    chosen ??= choose()
    return chosen(argv, options)
  }
}
