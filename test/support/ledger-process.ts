import { spawn } from "node:child_process"
import { join } from "node:path"
import type { LedgerResult } from "../../.opencode/baton/ledger/embedded/ledger-result.ts"
import type { RunLedger } from "./memory-ledger/memory-ledger.ts"
import { type OpenCodeBinary, REPOSITORY } from "./opencode-binary.ts"

/** A ledger program and the variables it needs; both real and embedded ledgers are run this way. */
export type LedgerProgram = {
  readonly name: string
  readonly command: string
  readonly environment: Readonly<Record<string, string>>
}

export const LAUNCHER = join(REPOSITORY, ".opencode", "baton", "bin", "prog")

/** Where sh, grep and the rest lie; no prog, bun or opencode. */
export const SYSTEM_PATH = "/usr/bin:/bin"

/** The embedded ledger through its launcher, on an OpenCode binary. */
export const embeddedProgram = ({ version, path }: OpenCodeBinary): LedgerProgram => ({
  name: `embedded on OpenCode ${version}`,
  command: LAUNCHER,
  environment: { BATON_LEDGER: "embedded", BATON_RUNTIME: path },
})

export type ProcessOptions = {
  /** Also the working folder. The database is `.prog/prog.db` in it, and so are prog's backups. */
  readonly home: string
  readonly environment?: Readonly<Record<string, string>>
}

/** Runs the program to its end, in an environment that holds nothing of the machine but the system's PATH. */
export const runProgram =
  (
    { command, environment }: Omit<LedgerProgram, "name">,
    { home, environment: extra = {} }: ProcessOptions,
  ): RunLedger =>
  (args, { stdin = "" } = {}) =>
    new Promise<LedgerResult>((resolve, reject) => {
      const env = { PATH: SYSTEM_PATH, TZ: "UTC", ...environment, ...extra, HOME: home }
      const child = spawn(command, args, { cwd: home, env })
      const output = { stdout: "", stderr: "" }
      child.stdout.setEncoding("utf8").on("data", (text: string) => {
        output.stdout += text
      })
      child.stderr.setEncoding("utf8").on("data", (text: string) => {
        output.stderr += text
      })
      // A program that does not read its input may close it first.
      child.stdin.on("error", () => {})
      child.stdin.end(stdin)
      child.on("error", reject)
      child.on("close", (exitCode, signal) => {
        if (exitCode === null) reject(new Error(`${command} ended by ${signal}: ${output.stderr}`))
        else resolve({ exitCode, ...output })
      })
    })

/** The database of a home folder. */
export const databaseOf = (home: string): string => join(home, ".prog", "prog.db")
