import type { ChatCompletionRequest, LLMock } from "@copilotkit/aimock"

type ChatMessage = { role: string; content: unknown }

/** Purpose of a request: a session title, a compaction summary, or the agent's next step. */
export type RequestKind = "title" | "compaction" | "turn"

export type ModelRequest = {
  kind: RequestKind
  /** Position among the requests of its kind, from 0. */
  index: number
  messages: readonly ChatMessage[]
  /** The parts of the system prompt, joined. */
  system: string
  /** All messages except the system prompt, as one text: everything the model can know. */
  conversation: string
  /** Names of the tools that the model may call. */
  tools: readonly string[]
  /** The whole request as received. */
  body: ChatCompletionRequest
}

type ToolCall = { tool: string; input: Record<string, unknown> }

/** @property reasoning the model's thoughts before the answer, if the provider has such parts */
type Extras = { promptTokens?: number; reasoning?: string }

export type ModelReply =
  | ({ text: string } & Extras)
  | ({ text?: string } & ToolCall & Extras)
  /** Several in one step, which OpenCode runs in parallel. */
  | { tools: readonly ToolCall[] }
  | { status: number; message: string }

export type Script = (request: ModelRequest) => ModelReply | Promise<ModelReply>

/** OpenCode 2's message that stands for the compacted part: the summary, and the newest messages word for word. */
const CHECKPOINT = /<conversation-checkpoint>[\s\S]*?<\/conversation-checkpoint>/g

/** The conversation goes on behind a compaction. */
export const isCompacted = ({ conversation }: Pick<ModelRequest, "conversation">): boolean =>
  conversation.includes("What did we do so far?") || conversation.includes("<conversation-checkpoint>")

/** The user's newest message, and the agent's work since then. */
export const newestWords = ({ conversation }: Pick<ModelRequest, "conversation">): string =>
  conversation.slice(conversation.lastIndexOf("[user]")).replace(CHECKPOINT, "")

/**
 * The same as an agent takes it for its order: without Baton's texts beside the message, which tell earlier orders again, among the user's
 * words on the task.
 */
export const newestOrder = (request: Pick<ModelRequest, "conversation">): string =>
  newestWords(request).replace(/\[Baton\] [\s\S]*?(?=\n\n\[(?:assistant|tool)\] |$)/g, "")

/** A shell call as the agent's step. */
export const bash = (command: string, promptTokens?: number): ModelReply => ({
  tool: "bash",
  input: { command, description: "A step" },
  ...(promptTokens === undefined ? {} : { promptTokens }),
})

export const occurrences = (text: string, part: string): number => text.split(part).length - 1

export type ScriptedModel = {
  /** OpenAI-compatible base URL on loopback. */
  readonly url: string
  /** All requests so far, in order. */
  readonly requests: readonly ModelRequest[]
  received(kind: RequestKind): readonly ModelRequest[]
  close(): Promise<void>
}

const textOf = (content: unknown): string => {
  if (typeof content === "string") return content
  if (!Array.isArray(content)) return content == null ? "" : JSON.stringify(content)
  return content.map((part) => (typeof part?.text === "string" ? part.text : JSON.stringify(part))).join("\n")
}

/** The last message of a request for a summary in OpenCode 2, which has tools: of Baton's prompt, or OpenCode's own. */
const ASKS_FOR_SUMMARY =
  /^(?:<!-- baton:handoff|# Write the handoff|You MUST summarize the conversation|Update the existing checkpoint|The previous response did not)/

const kindOf = (system: string, hasTools: boolean, last: string): RequestKind => {
  if (system.includes("title generator")) return "title"
  return hasTools && !ASKS_FOR_SUMMARY.test(last.trim()) ? "turn" : "compaction"
}

const DEFAULT_PROMPT_TOKENS = 500

const usage = (promptTokens = DEFAULT_PROMPT_TOKENS) => ({
  prompt_tokens: promptTokens,
  completion_tokens: 10,
  total_tokens: promptTokens + 10,
})

/** Tools and arguments that have other names in OpenCode 2; scripts have those of OpenCode 1. */
const NAMES_IN_2: Readonly<Record<string, string>> = { apply_patch: "patch", bash: "shell", task: "subagent" }
const ARGUMENTS_IN_2: Readonly<Record<string, string>> = { filePath: "path", subagent_type: "agent" }

/** The call by the names of the tools that the request offers. */
const asOffered = ({ tool, input }: ToolCall, offered: ChatCompletionRequest["tools"] = []): ToolCall => {
  const find = (name: string) => offered.find((each) => each.function.name === name)
  const name = find(tool) === undefined ? (NAMES_IN_2[tool] ?? tool) : tool
  const known = Object(find(name)?.function.parameters).properties ?? {}
  const argument = (given: string): string => {
    const other = ARGUMENTS_IN_2[given]
    return other !== undefined && !(given in known) && other in known ? other : given
  }
  return { tool: name, input: Object.fromEntries(Object.entries(input).map(([key, value]) => [argument(key), value])) }
}

type MockPackage = { LLMock: typeof LLMock }

/**
 * A model on loopback that answers by `script` and keeps its requests.
 *
 * @param loadMock loads the mock server, for a caller whose packages are not above this file
 * @param morePromptTokens beside those that a reply names
 */
export const startScriptedModel = async (
  script: Script,
  loadMock: () => Promise<MockPackage> = () => import("@copilotkit/aimock"),
  morePromptTokens = 0,
): Promise<ScriptedModel> => {
  const { LLMock } = await loadMock()
  const requests: ModelRequest[] = []
  const counts: Record<RequestKind, number> = { title: 0, compaction: 0, turn: 0 }
  const mock = new LLMock({ port: 0, host: "127.0.0.1", logLevel: "silent" })
  let toolCalls = 0
  const toCall = ({ tool, input }: ToolCall) => ({
    id: `call_${++toolCalls}`,
    name: tool,
    arguments: JSON.stringify(input),
  })
  mock.on({ predicate: () => true }, async (incoming) => {
    const messages: ChatMessage[] = incoming.messages
    const system = messages.flatMap(({ role, content }) => (role === "system" ? [textOf(content)] : [])).join("\n")
    const conversation = messages
      .filter(({ role }) => role !== "system")
      .map((message) => {
        const calls = "tool_calls" in message ? JSON.stringify(message.tool_calls) : ""
        return `[${message.role}] ${textOf(message.content)}${calls}`
      })
      .join("\n\n")
    const tools = (incoming.tools ?? []).map((tool) => tool.function.name)
    const kind = kindOf(system, tools.length > 0, textOf(messages.at(-1)?.content))
    const request = { kind, index: counts[kind]++, messages, system, conversation, tools, body: incoming }
    requests.push(request)
    if (kind === "title") return { content: "A scripted title", usage: usage() }
    const reply = await script(request)
    if ("status" in reply) return { error: { message: reply.message, type: "scripted" }, status: reply.status }
    const call = (given: ToolCall) => toCall(asOffered(given, incoming.tools))
    if ("tools" in reply) return { toolCalls: reply.tools.map(call), usage: usage(), finishReason: "tool_calls" }
    const { promptTokens } = reply
    const answer = {
      ...(reply.reasoning === undefined ? {} : { reasoning: reply.reasoning }),
      ...(reply.text === undefined ? {} : { content: reply.text }),
      usage: usage(promptTokens === undefined ? undefined : promptTokens + morePromptTokens),
    }
    return "tool" in reply ? { ...answer, toolCalls: [call(reply)], finishReason: "tool_calls" } : answer
  })
  const url = await mock.start()
  return {
    url: `${url}/v1`,
    requests,
    received: (kind) => requests.filter((request) => request.kind === kind),
    close: () => mock.stop(),
  }
}
