import { join } from "node:path"
import { type OpenCodeBinary, REPOSITORY } from "../opencode/opencode-binary.ts"
import { runProgram } from "../opencode/opencode-run.ts"
import type { TestProject } from "../opencode/test-project.ts"

export const TASK = {
  title: "Teach the parser CRLF",
  specification: "Lines may end in CRLF.\nKeep LF as it is.",
  definitionOfDone: "bun test passes on Windows line ends",
}

type ShownTask = {
  id: string
  title: string
  status: string
  description: string
  logs: { message: string; created_at: string }[]
}

/** A log message without the session that a compaction's ends with. */
export const withoutSession = (message: string): string => message.replace(/ \(session ses_\w+\)$/, "")

/** Opens the project's ledger through the bundle's launcher. */
export const openTestLedger = (project: TestProject, binary: OpenCodeBinary) => {
  const launcher = join(REPOSITORY, ".opencode", "baton", "bin", "prog")
  /** Runs `prog ARGS` from outside of OpenCode; fails on a non-zero exit. @returns stdout, trimmed */
  const prog = async (...args: string[]): Promise<string> => {
    const result = await runProgram([launcher, ...args], { project, environment: { BATON_RUNTIME: binary.path } })
    if (result.exitCode !== 0) throw new Error(`prog ${args.join(" ")} exited ${result.exitCode}: ${result.stderr}`)
    return result.stdout.trim()
  }
  const show = async (id: string): Promise<ShownTask> => JSON.parse(await prog("show", id, "--json"))
  return {
    prog,
    addTask: (task: typeof TASK) =>
      prog("add", task.title, "-p", "demo", "--dod", task.definitionOfDone, "--desc", task.specification),
    show,
    /** Messages of a task's log, each without its session. */
    messages: async (id: string): Promise<string[]> =>
      (await show(id)).logs.map(({ message }) => withoutSession(message)),
  }
}

export type TestLedger = ReturnType<typeof openTestLedger>
