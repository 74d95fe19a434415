import { randomBytes } from "node:crypto"
import type { PluginInput } from "@opencode-ai/plugin"
import { describeError } from "./log.ts"
import { type Argv, childEnvironment, MAX_OUTPUT_BYTES, type ProcessOutcome, type RunProcess } from "./process-port.ts"
import { readProcesses, selectTagged, signalIfThere } from "./process-table.ts"

type Shell = PluginInput["$"]

/**
 * Runs its arguments after the first two, and bounds what they print. One line, so that `ps` shows it on one.
 *
 * `$0` is a tag that finds this shell and its descendants in the process table, since `$` tells no pid and cannot kill:
 * a tag, unlike a pid, is never reused. The program's own exit code comes back through descriptor 5; stdout leaves
 * through 3 and stderr through 4, each behind a `head`. `timeout`, where there is one, ends the program when the host
 * is gone and cannot. Arguments arrive with a leading `=`, because Bun 1.3.10 drops empty ones.
 */
const BOUNDED_RUN = [
  "bytes=${1#=}; seconds=${2#=}; shift 2;",
  'for a do shift; set -- "$@" "${a#=}"; done;',
  'case $1 in */*) [ -f "$1" ] && [ -x "$1" ];; *) command -v "$1" >/dev/null 2>&1;; esac',
  '|| { printf %s "$0" >&2; exit 127; };',
  'command -v timeout >/dev/null 2>&1 && set -- timeout -s KILL "$seconds" "$@";',
  "exec 3>&1 4>&2;",
  'status=$({ { { "$@" 3>&- 4>&- 5>&- 6>&-; echo $? >&5; } 2>&6 | head -c "$bytes" >&3; } 6>&1',
  '| head -c "$bytes" >&4; } 5>&1);',
  'exit "$status"',
].join(" ")

const KILL_RETRY_MS = 250
const KILL_ATTEMPTS = 20

/**
 * Stops them before it ends them: a shell that is just starting its program would leave it behind, with no tag on it and
 * no parent. Gives why the processes could not be ended, or nothing when they were.
 */
const killTagged = async (tag: string, platform: NodeJS.Platform): Promise<string | undefined> => {
  const stopped = new Set<number>()
  let failure: string | undefined
  const attempt = (pid: number, signal: "SIGSTOP" | "SIGKILL"): void => {
    try {
      signalIfThere(pid, signal)
    } catch (error) {
      failure ??= describeError(error)
    }
  }
  try {
    for (;;) {
      const fresh = selectTagged(await readProcesses(platform), tag).filter((pid) => !stopped.has(pid))
      if (fresh.length === 0) break
      for (const pid of fresh) {
        attempt(pid, "SIGSTOP")
        stopped.add(pid)
      }
    }
  } catch (error) {
    failure = describeError(error)
  }
  for (const pid of stopped) attempt(pid, "SIGKILL")
  return failure
}

const commandLine = (tag: string, argv: Argv, bytes: number, deadlineMs: number): string[] => {
  const seconds = Math.ceil(deadlineMs / 1000) + 1
  return ["/bin/sh", "-c", BOUNDED_RUN, tag, ...[String(bytes), String(seconds), ...argv].map((text) => `=${text}`)]
}

const readOutcome = (
  argv: Argv,
  tag: string,
  output: { exitCode: number; stdout: Buffer; stderr: Buffer },
): ProcessOutcome => {
  const stderr = output.stderr.toString()
  if (output.exitCode === 127 && stderr === tag) {
    return { kind: "not-started", cause: `${argv[0]} is not an executable file and not on PATH` }
  }
  // The shell itself could not be started, for example because an argument is too long.
  if (output.exitCode === 1 && output.stdout.length === 0 && stderr.startsWith("bun: ")) {
    return { kind: "not-started", cause: stderr.trim() }
  }
  return { kind: "exited", exitCode: output.exitCode, stdout: output.stdout.toString(), stderr }
}

/** The runner on Bun's `$`, for POSIX systems. One argument may be 131,070 bytes long on Linux. */
export const createShellRunner =
  ({ shell, platform }: { shell: Shell; platform: NodeJS.Platform }): RunProcess =>
  (argv, { cwd, deadlineMs, stdin, env, maxOutputBytes = MAX_OUTPUT_BYTES }) =>
    new Promise((resolve) => {
      const tag = `baton-run-${randomBytes(12).toString("hex")}`
      const command = commandLine(tag, argv, maxOutputBytes, deadlineMs)
      let settled = false
      let attempts = 0

      const end = async (): Promise<void> => {
        attempts += 1
        const leftBehind = await killTagged(tag, platform)
        resolve({ kind: "timed-out", deadlineMs, ...(leftBehind === undefined ? {} : { leftBehind }) })
        // A child that `$` was only about to start when the deadline passed shows up a little later.
        if (!settled && attempts < KILL_ATTEMPTS) setTimeout(() => void end(), KILL_RETRY_MS).unref()
      }

      const call = async (): Promise<ProcessOutcome> => {
        const started = stdin === undefined ? shell`${command} < /dev/null` : shell`${command} < ${Buffer.from(stdin)}`
        try {
          return readOutcome(argv, tag, await started.cwd(cwd).env(childEnvironment(env)).quiet().nothrow())
        } catch (error) {
          return { kind: "not-started", cause: `${argv[0]} in ${cwd}: ${describeError(error)}` }
        }
      }

      const timer = setTimeout(() => void end(), deadlineMs)
      timer.unref()
      void call().then((outcome) => {
        settled = true
        clearTimeout(timer)
        resolve(outcome)
      })
    })
