import { readdirSync } from "node:fs"
import { join } from "node:path"
import { type AgentScript, lastToolAnswer, passOverScript, START } from "../model/pass-over-script.ts"
import type { Script } from "../model/scripted-model.ts"
import type { OpenCodeBinary } from "./opencode-binary.ts"
import { openSharedTask, openTaskProject, type SharedTask, type TaskProject } from "./task-project.ts"
import type { TestProject } from "./test-project.ts"

export type PassOverProject = {
  root: AgentScript
  agents?: Record<string, AgentScript>
  /** Content of `.opencode/pass-over.json`, with auto_return; a string is written unchanged. */
  policy?: unknown
  config?: Record<string, unknown>
}

type Options = { context: number; config?: Record<string, unknown> }

export const CODER = "---\ndescription: writes code\nmode: subagent\n---\nYou write code.\n"

/** A project with a policy, scripted agents, and subagents `coder`, `second`, `third` and `fourth` that may change files. */
const openWith =
  <Task extends Pick<TaskProject, "project">>(
    open: (binary: OpenCodeBinary, script: Script, options: Options) => Promise<Task>,
  ) =>
  async (binary: OpenCodeBinary, { root, agents = {}, policy = {}, config = {} }: PassOverProject): Promise<Task> => {
    // Unless a test says otherwise, the user has allowed every result.
    const permission = { pass_over_result: "allow", ...Object(config.permission) }
    const task = await open(binary, passOverScript({ root, agents }), {
      context: 100_000,
      config: { ...config, permission },
    })
    const { project } = task
    project.write("src/a.ts", "export const a = 1\n")
    const { defaults, ...others } = Object(policy)
    const unasked = { ...others, defaults: { auto_return: true, ...defaults } }
    project.write(".opencode/pass-over.json", typeof policy === "string" ? policy : JSON.stringify(unasked))
    for (const name of ["coder", "second", "third", "fourth"]) project.write(`.opencode/agent/${name}.md`, CODER)
    return task
  }

export const openPassOverProject = openWith<TaskProject>(openTaskProject)
/** Opens such a project in the shared server. */
export const openSharedPasses = openWith<SharedTask>(openSharedTask)

/** Starts the root agent's work. @returns its last tool's answer */
export const goThrough = async ({ say, model }: SharedTask): Promise<string> => {
  await say(START)
  return lastToolAnswer(model.requests)
}

/** The files of `src`: a.ts alone until an agent writes there. */
export const sources = ({ directory }: TestProject): string[] => readdirSync(join(directory, "src")).sort()
