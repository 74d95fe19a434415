import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import type { PassRecord } from "../../../.opencode/baton/pass-over/store/record.ts"
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

/** The project's passes, oldest first. */
export const passRecords = ({ directory }: TestProject): PassRecord[] => {
  const folder = join(directory, ".opencode", "state", "pass-over")
  const ids = readdirSync(folder).filter((name) => name.startsWith("pass_"))
  return ids.sort().map((id) => JSON.parse(readFileSync(join(folder, id, "pass.json"), "utf8")))
}

export const passStates = (project: TestProject): string[] => passRecords(project).map(({ state }) => state.state)

/** Opens such a project with a session and the user's actions in it. */
export const openPassOverSession = async (binary: OpenCodeBinary, options: PassOverProject) => {
  const task = await openSharedPasses(binary, options)
  const { client, say } = task
  const id = (await client.session.create({ body: {} })).data?.id ?? ""
  const messages = async (of = id) => (await client.session.messages({ path: { id: of } })).data ?? []
  return {
    ...task,
    sessionID: id,
    messages,
    say: (text: string) => say(text, id),
    sayLater: (text: string) => client.session.promptAsync({ path: { id }, body: { parts: [{ type: "text", text }] } }),
    children: async (of = id) =>
      ((await client.session.children({ path: { id: of } })).data ?? []).map((each) => each.id),
    /** Tool answers in this session, oldest first. */
    answers: async (): Promise<string[]> =>
      (await messages()).flatMap(({ parts }) =>
        parts.flatMap((part) => {
          if (part.type !== "tool") return []
          if (part.state.status === "completed") return [part.state.output]
          return part.state.status === "error" ? [part.state.error] : []
        }),
      ),
    /** Those of these sessions that are busy. */
    busy: async (ids: readonly string[]): Promise<string[]> => {
      const { data, error } = await client.session.status()
      if (!data) throw new Error(`no session's status is known: ${JSON.stringify(error)}`)
      // Idle sessions are not in it.
      return ids.filter((each) => (data[each]?.type ?? "idle") !== "idle")
    },
  }
}
