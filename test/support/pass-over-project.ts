import { afterEach } from "vitest"
import type { OpenCodeBinary } from "./opencode-binary.ts"
import { startServer, type TestServer } from "./opencode-server.ts"
import { type AgentScript, passOverScript } from "./pass-over-script.ts"
import { openTaskProject, type TaskProject } from "./task-project.ts"
import type { ProjectOptions } from "./test-project.ts"

export type PassOverProject = {
  root: AgentScript
  agents?: Record<string, AgentScript>
  /** What `.opencode/pass-over.json` holds; a text is written as it is. */
  policy?: unknown
  options?: Partial<ProjectOptions>
}

const CODER = "---\ndescription: writes code\nmode: subagent\n---\nYou write code.\n"

/** A project with a policy, scripted agents, and subagents `coder`, `second`, `third` and `fourth` that may change files. */
export const openPassOverProject = async (
  binary: OpenCodeBinary,
  { root, agents = {}, policy = {}, options = {} }: PassOverProject,
): Promise<TaskProject> => {
  const script = passOverScript({ root, agents })
  const task = await openTaskProject(binary, script, { context: 100_000, ...options })
  task.project.write("src/a.ts", "export const a = 1\n")
  task.project.write(".opencode/pass-over.json", typeof policy === "string" ? policy : JSON.stringify(policy))
  for (const name of ["coder", "second", "third", "fourth"]) task.project.write(`.opencode/agent/${name}.md`, CODER)
  return task
}

const servers: TestServer[] = []

/** Call once at the top of a test file that uses `openPassOverServer`. */
export const closePassOverServers = (): void => {
  afterEach(async () => {
    for (const server of servers.splice(0)) await server.stop()
  })
}

/** `opencode serve` for such a project, a session in it, and what a user does there. */
export const openPassOverServer = async (binary: OpenCodeBinary, task: TaskProject, sessionID?: string) => {
  const server = await startServer(binary, task.project)
  servers.push(server)
  const { client } = server
  const id = sessionID ?? (await client.session.create({ body: {} })).data?.id ?? ""
  const messages = async (of = id) => (await client.session.messages({ path: { id: of } })).data ?? []
  const body = (text: string) => ({ parts: [{ type: "text" as const, text }] })
  return {
    client,
    server,
    sessionID: id,
    messages,
    say: (text: string) => client.session.prompt({ path: { id }, body: body(text) }),
    sayLater: (text: string) => client.session.promptAsync({ path: { id }, body: body(text) }),
    children: async (of = id) =>
      ((await client.session.children({ path: { id: of } })).data ?? []).map((each) => each.id),
    /** The answers of the tools of this session, oldest first. */
    answers: async (): Promise<string[]> =>
      (await messages()).flatMap(({ parts }) =>
        parts.flatMap((part) => {
          if (part.type !== "tool") return []
          if (part.state.status === "completed") return [part.state.output]
          return part.state.status === "error" ? [part.state.error] : []
        }),
      ),
  }
}
