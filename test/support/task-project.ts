import { afterEach } from "vitest"
import type { OpenCodeBinary } from "./opencode-binary.ts"
import { type RunOptions, type RunResult, runOpenCode } from "./opencode-run.ts"
import { type Script, type ScriptedModel, startScriptedModel } from "./scripted-model.ts"
import { openTestLedger, type TestLedger } from "./test-ledger.ts"
import { createTestProject, type ProjectOptions, type TestProject } from "./test-project.ts"

export const TASK = {
  title: "Teach the parser CRLF",
  specification: "Lines may end in CRLF.\nKeep LF as it is.",
  definitionOfDone: "bun test passes on Windows line ends",
}
export const BRIEF = "Never touch the lexer; the release is frozen until Friday."

/** A project with one task in its ledger and a scripted model. */
export type TaskProject = {
  binary: OpenCodeBinary
  model: ScriptedModel
  project: TestProject
  ledger: TestLedger
  taskID: string
  /** The first message of a worker on the task. */
  message: string
  run(message: string, options?: Omit<RunOptions, "binary" | "project">): Promise<RunResult>
}

const opened: { model: ScriptedModel; project: TestProject }[] = []

/** Call once at the top of a test file: closes models and removes projects after each test. */
export const closeTaskProjects = (): void => {
  afterEach(async () => {
    for (const { model, project } of opened.splice(0)) {
      await model.close()
      if (!process.env.BATON_KEEP_PROJECTS) await project.remove()
    }
  })
}

/** @param script is first asked when OpenCode runs, so it may use what this function returns */
export const openTaskProject = async (
  binary: OpenCodeBinary,
  script: Script,
  options: Partial<ProjectOptions> = {},
): Promise<TaskProject> => {
  const model = await startScriptedModel(script)
  const project = createTestProject({ binary, modelURL: model.url, ...options })
  opened.push({ model, project })
  const ledger = openTestLedger(project, binary)
  const taskID = await ledger.addTask(TASK)
  return {
    binary,
    model,
    project,
    ledger,
    taskID,
    message: `# Worker\n\nTask: ${taskID}\n\n${BRIEF}\n`,
    run: (message, run = {}) => runOpenCode(message, { binary, project, ...run }),
  }
}

/** The newest session that OpenCode's log names. */
export const newestSessionID = ({ project }: TaskProject): string => {
  const found = project
    .log()
    .match(/\bses_[A-Za-z0-9]{20,}/g)
    ?.at(-1)
  if (!found) throw new Error("OpenCode's log names no session")
  return found
}
