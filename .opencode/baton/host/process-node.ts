import { type ChildProcessByStdio, spawn } from "node:child_process"
import { constants as system } from "node:os"
import type { Readable, Writable } from "node:stream"
import { describeError } from "./log.ts"
import { childEnvironment, MAX_OUTPUT_BYTES, type RunProcess } from "./process-port.ts"
import { signalIfThere } from "./process-table.ts"

/** A signal's exit code as a shell reports it; a null code is never taken for success. */
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

/** Gives why the program could not be ended, or nothing when it was. */
const kill = (child: Child, platform: NodeJS.Platform): string | undefined => {
  // Once it has been waited for, its pid may belong to somebody else.
  const waitedFor = child.exitCode !== null || child.signalCode !== null
  try {
    if (waitedFor || child.pid === undefined) return undefined
    if (platform === "win32") child.kill("SIGKILL")
    // Its own process group: what it started ends with it.
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

/** The runner on node:child_process, for Node and for Windows. One argument may be 131,071 bytes long on Linux. */
export const createNodeRunner =
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
        // A program that ends without reading is no error of ours.
        child.stdin?.on("error", () => {})
        child.stdin?.end(stdin)
      } catch (error) {
        fail(error)
      }
    })
