import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { dirname } from "node:path"
import type { PluginInput } from "@opencode-ai/plugin"
import type { Part } from "@opencode-ai/sdk"
import type { PermissionRule } from "../../../.opencode/baton/host/permissions.ts"
import type { StoredMessage } from "../../../.opencode/baton/host/sessions.ts"
import { assistantMessage, completedTool, toolPart, userMessage } from "./stored-messages.ts"

/** Actions of an agent in its session; a tool's refusal is thrown. */
export type AgentTurn = {
  sessionID: string
  text: string
  /** The context sent with the text. */
  context: string
  signal: AbortSignal
  write(path: string, content: string): Promise<void>
  remove(path: string): Promise<void>
  read(path: string): Promise<string>
  /** Passes a tool call through the hooks as OpenCode would. @returns its arguments after them */
  use(tool: string, args: Record<string, unknown>): Promise<Record<string, unknown>>
  /** Calls pass_over_return. */
  giveBack(args: unknown): Promise<string>
  say(text: string): void
}

/** Throws for a model that fails. */
export type FakeAgent = (turn: AgentTurn) => Promise<void>

/** The hooks that OpenCode would call. */
type Host = {
  beforeTool(call: { sessionID: string; tool: string; callID: string }, output: { args: unknown }): Promise<void>
  return(args: unknown, context: { sessionID: string }): Promise<string>
  receive(event: { type: string; properties?: unknown }): Promise<void> | undefined
}

type Session = {
  id: string
  parentID?: string
  permission: readonly PermissionRule[]
  messages: StoredMessage[]
  turn?: AbortController
}

const OPEN: readonly PermissionRule[] = [{ permission: "*", pattern: "*", action: "allow" }]

/** Called before each call of the client; a returned text makes it fail, a promise makes it wait. */
export type Faults = (call: string) => string | undefined | Promise<string | undefined>

/**
 * OpenCode's sessions in memory, behind the client of a plugin: enough for passes, without a model. Tools work on the disk, at
 * the path set by the plugin's hook.
 */
export const createFakeOpenCode = (given: {
  directory: string
  agents: Readonly<Record<string, FakeAgent>>
  faults?: Faults
  /** Of the root's agent and the subagents. */
  rules?: readonly PermissionRule[]
}) => {
  const { directory, agents, faults = () => undefined, rules = OPEN } = given
  const sessions = new Map<string, Session>()
  let host: Host | undefined
  let count = 0
  let turns = 0
  let calls = 0

  const open = (parentID?: string, permission: readonly PermissionRule[] = []): Session => {
    const session: Session = { id: `ses_fake${++count}`, ...(parentID ? { parentID } : {}), permission, messages: [] }
    sessions.set(session.id, session)
    void host?.receive({ type: "session.created", properties: { info: { id: session.id, parentID } } })
    return session
  }
  const root = open()
  root.messages.push(userMessage([], "msg_root"))

  const answer = async (call: string, work: () => unknown): Promise<{ data?: unknown; error?: unknown }> => {
    const fault = await faults(call)
    return fault === undefined ? { data: await work() } : { error: { name: fault } }
  }
  const get = (id: string): Session => {
    const session = sessions.get(id)
    if (!session) throw new Error(`no session ${id}`)
    return session
  }
  const describe = ({ id, parentID, permission }: Session) => {
    return { id, parentID, permission, title: id, projectID: "p", directory }
  }
  const textOf = (sessionID: string, text: string): Part => ({
    id: "prt",
    sessionID,
    messageID: "m",
    type: "text",
    text,
  })

  const run = async (session: Session, agent: string, [text = "", context = ""]: string[]): Promise<StoredMessage> => {
    turns++
    const turn = new AbortController()
    session.turn = turn
    const message = assistantMessage(undefined, { mode: agent })
    const { info, parts } = message
    session.messages.push(message)
    const use = async <T extends Record<string, unknown>>(tool: string, args: T): Promise<T> => {
      const callID = `call_${++calls}`
      await host?.beforeTool({ sessionID: session.id, tool, callID }, { args })
      parts.push(toolPart(tool, completedTool("", "", args), callID))
      return args
    }
    const move = async (tool: string, filePath: string): Promise<string> => (await use(tool, { filePath })).filePath
    let error: { name: string; data: { message: string } } | undefined
    try {
      await agents[agent]?.({
        sessionID: session.id,
        text,
        context,
        signal: turn.signal,
        write: async (path, content) => {
          const place = await move("write", `${directory}/${path}`)
          mkdirSync(dirname(place), { recursive: true })
          writeFileSync(place, content)
        },
        remove: async (path) => rmSync(await move("write", `${directory}/${path}`)),
        read: async (path) => readFileSync(await move("read", `${directory}/${path}`), "utf8"),
        use,
        giveBack: async (args) => (await host?.return(args, { sessionID: session.id })) ?? "",
        say: (words) => parts.push(textOf(session.id, words)),
      })
    } catch (cause) {
      error = { name: "UnknownError", data: { message: String(cause) } }
    }
    delete session.turn
    if (turn.signal.aborted) error = { name: "MessageAbortedError", data: { message: "aborted" } }
    if (error) Object.assign(info, { error })
    return message
  }

  type At<Body = unknown> = { path: { id: string }; body: Body }
  type Prompt = At<{ agent: string; parts: { text: string }[] }>
  const listAgents = () =>
    ["build", ...Object.keys(agents)].map((name) => {
      return { name, mode: name === "build" ? "primary" : "subagent", permission: rules }
    })
  const childrenOf = (id: string) => [...sessions.values()].filter(({ parentID }) => parentID === id).map(describe)
  const client = {
    app: { log: async () => ({ data: true }), agents: () => answer("agents", listAgents) },
    tui: { showToast: async () => ({ data: true }) },
    postSessionIdPermissionsPermissionId: () => answer("refuse", () => true),
    session: {
      create: ({ body }: { body: { parentID: string; permission: PermissionRule[] } }) =>
        answer("create", () => describe(open(body.parentID, body.permission))),
      get: ({ path }: At) => answer("get", () => describe(get(path.id))),
      messages: ({ path }: At) => answer("messages", () => get(path.id).messages),
      todo: () => answer("todo", () => []),
      children: ({ path }: At) => answer("children", () => childrenOf(path.id)),
      status: () => answer("status", () => ({})),
      abort: ({ path }: At) => answer("abort", () => get(path.id).turn?.abort()),
      prompt: ({ path, body: { agent, parts } }: Prompt) => {
        const texts = parts.map(({ text }) => text)
        return answer("prompt", () => run(get(path.id), agent, texts))
      },
      promptAsync: ({ path, body }: Prompt) => {
        const parts = body.parts.map(({ text }) => textOf(path.id, text))
        return answer("promptAsync", () => get(path.id).messages.push(userMessage(parts)))
      },
    },
  }

  return {
    // The client has hundreds of calls; these are the ones passes use.
    input: { client, directory, worktree: directory, $: undefined } as unknown as PluginInput,
    rootID: root.id,
    connect: (hooks: Host): void => {
      host = hooks
    },
    messagesOf: (id: string) => get(id).messages,
    turns: () => turns,
    isBusy: () => [...sessions.values()].some(({ turn }) => turn !== undefined),
  }
}

/** A tool's context for a call of the root session's agent. */
export const fakeToolContext = (sessionID: string, abort: AbortSignal = new AbortController().signal) => ({
  sessionID,
  messageID: "msg_call",
  agent: "build",
  directory: "",
  worktree: "",
  abort,
  metadata: () => {},
  ask: async (_question: { permission: string; patterns: string[] }): Promise<void> => {},
})
