import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { join } from "node:path"
import { afterAll, beforeAll } from "vitest"
import type { LedgerResult } from "../../../.opencode/baton/ledger/embedded/command-tree.ts"
import { type OpenCodeBinary, REPOSITORY } from "../opencode/opencode-binary.ts"
import { runProgram as run } from "../opencode/opencode-run.ts"
import type { LoopCall } from "./ledger-loop.ts"

export type LedgerOptions = {
  /** The command's standard input: `learn … --detail -`. */
  readonly stdin?: string
}

/** Runs one prog command line: arguments without the program's name. A refusal resolves with an exit code. */
export type RunLedger = (args: readonly string[], options?: LedgerOptions) => Promise<LedgerResult>

/** A ledger program and its variables; real and embedded ledgers are both run this way. */
export type LedgerProgram = {
  readonly name: string
  readonly command: string
  readonly environment: Readonly<Record<string, string>>
}

export const LAUNCHER = join(REPOSITORY, ".opencode", "baton", "bin", "prog")

/** Folders of sh, grep and the like; without prog, bun or opencode. */
export const SYSTEM_PATH = "/usr/bin:/bin"

/** The embedded ledger through its launcher, on an OpenCode binary. */
export const embeddedProgram = ({ version, path }: OpenCodeBinary): LedgerProgram => ({
  name: `embedded on OpenCode ${version}`,
  command: LAUNCHER,
  environment: { BATON_LEDGER: "embedded", BATON_RUNTIME: path },
})

/**
 * Runs the program to its end; its environment holds nothing of the machine but the system's PATH.
 *
 * @param place `home` is also the working folder. It holds `.prog/prog.db` and prog's backups.
 */
export const runProgram =
  (
    { command, environment }: Omit<LedgerProgram, "name">,
    place: { home: string; environment?: Readonly<Record<string, string>> },
  ): RunLedger =>
  async (args, { stdin = "" } = {}) => {
    const env = {
      PATH: SYSTEM_PATH,
      TZ: "UTC",
      BATON_COPIES: "off",
      ...environment,
      ...place.environment,
      HOME: place.home,
    }
    const project = { directory: place.home, environment: env }
    const { exitCode, signal, stdout, stderr } = await run([command, ...args], { project, stdin })
    if (exitCode === null) throw new Error(`${command} ended by ${signal}: ${stderr}`)
    return { exitCode, stdout, stderr }
  }

export const databaseOf = (home: string): string => join(home, ".prog", "prog.db")

/**
 * The embedded ledger in one process for all calls of a file or `describe`, since a process start costs more than a call.
 * Commands and SQL are the shipped ones, and each call opens the database anew.
 *
 * @returns the ledger of a home folder
 */
export const holdEmbedded = ({ path }: OpenCodeBinary, environment = { TZ: "UTC" }): ((home: string) => RunLedger) => {
  const calls: { resolve(result: LedgerResult): void; reject(reason: Error): void }[] = []
  let child: ChildProcess
  let ended: Promise<void>
  beforeAll(() => {
    const loop = join(import.meta.dirname, "ledger-loop.ts")
    const env = { PATH: SYSTEM_PATH, BUN_BE_BUN: "1", ...environment }
    child = spawn(path, ["run", loop], { env, stdio: ["ignore", "inherit", "inherit", "ipc"] })
    child.on("message", (result: LedgerResult) => calls.shift()?.resolve(result))
    ended = once(child, "exit").then(([exitCode, signal]) => {
      for (const { reject } of calls) reject(new Error(`the embedded ledger ended: ${exitCode ?? signal}`))
    })
  })
  afterAll(() => {
    child.kill()
    return ended
  })
  return (home) =>
    (args, { stdin = "" } = {}) =>
      new Promise((resolve, reject) => {
        const call: LoopCall = { database: databaseOf(home), args, stdin }
        calls.push({ resolve, reject })
        child.send(call, (error) => error && reject(error))
      })
}
