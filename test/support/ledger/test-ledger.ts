import { join } from "node:path"
import { type OpenCodeBinary, REPOSITORY } from "../opencode/opencode-binary.ts"
import { runProgram } from "../opencode/opencode-run.ts"
import type { TestProject } from "../opencode/test-project.ts"

export type ShownTask = {
  id: string
  title: string
  status: string
  description: string
  logs: { message: string; created_at: string }[]
}

export type TestLedger = {
  /** Runs `prog ARGS` from outside of OpenCode; fails on a non-zero exit. @returns stdout, trimmed */
  prog(...args: string[]): Promise<string>
  addTask(options: { title: string; specification: string; definitionOfDone: string }): Promise<string>
  show(id: string): Promise<ShownTask>
}

/** Opens the project's ledger through the bundle's launcher. */
export const openTestLedger = (project: TestProject, binary: OpenCodeBinary): TestLedger => {
  const launcher = join(REPOSITORY, ".opencode", "baton", "bin", "prog")
  const prog = async (...args: string[]): Promise<string> => {
    const result = await runProgram([launcher, ...args], { project, environment: { BATON_RUNTIME: binary.path } })
    if (result.exitCode !== 0) throw new Error(`prog ${args.join(" ")} exited ${result.exitCode}: ${result.stderr}`)
    return result.stdout.trim()
  }
  return {
    prog,
    addTask: ({ title, specification, definitionOfDone }) =>
      prog("add", title, "-p", "demo", "--dod", definitionOfDone, "--desc", specification),
    show: async (id) => JSON.parse(await prog("show", id, "--json")),
  }
}
