import { createHash } from "node:crypto"
import type { Part } from "@opencode-ai/sdk"
import { collectText, collectUserText } from "../../host/messages.ts"
import { readProjectFile } from "../../host/project-file.ts"
import { quoted } from "../../host/quoted.ts"
import type { AgentAndModel, MessagePage, Result, Sessions, StoredMessage } from "../../host/sessions.ts"
import { cutText } from "../../host/text.ts"
import type { Ledger } from "../../ledger/ledger.ts"
import type { SessionTask } from "../../task/registry.ts"
import { renderUserWords, WORDS_HEADING } from "../../task/user-words.ts"
import type { PassOverArguments, PassOverRequest, WorkContext } from "../contract.ts"
import type { Skipped } from "../sandbox/snapshot.ts"

const READ_DEADLINE_MS = 1_500

/** Describes a task from the ledger for an agent new to it; undefined when it cannot be read now. */
export const describeTask = async (ledger: Pick<Ledger, "readTask">, taskID: string): Promise<string | undefined> => {
  const read = await ledger.readTask(taskID, { deadlineMs: READ_DEADLINE_MS })
  if (read.kind !== "found") return undefined
  const { title, description, definitionOfDone } = read.task
  const done = definitionOfDone ? [`Definition of done: ${definitionOfDone.untrusted}`] : []
  return [quoted(title), ...done, description.untrusted].filter((text) => text !== "").join("\n")
}

const DEFAULT_MESSAGES = 4
const BLOCK_CHARACTERS = 6_000

type GatherDeps = {
  readonly sessions: Pick<Sessions, "messages" | "todos">
  /** Real paths: of the folder that files must be in, and of the base of relative paths. */
  readonly places: () => Promise<{ root: string; base: string }>
  /** Maps a path to its real place, for an originator that works in a sandbox. */
  readonly locate: (path: string) => string
  readonly findTask: (sessionID: string) => Promise<SessionTask | undefined>
  /** Reads the ledger's description of a task; undefined when it cannot be read. */
  readonly readSpecification: (taskID: string) => Promise<string | undefined>
}

const readFile = async (places: { root: string; base: string }, path: string): Promise<File> => {
  const file = await readProjectFile(places, path)
  if (file.kind !== "file") return { path, content: null, hash: null, note: file.reason }
  return { path: file.path, content: file.text, hash: createHash("sha256").update(file.text).digest("hex") }
}

const messagesOf = (page: Result<MessagePage>, messageID: string): StoredMessage[] =>
  // The message that makes this call is not finished.
  page.kind === "ok" ? page.value.messages.filter(({ info }) => info.id !== messageID) : []

const modelOf = (page: Result<MessagePage>, messageID: string): AgentAndModel["model"] | undefined => {
  const own = page.kind === "ok" ? page.value.messages.find(({ info }) => info.id === messageID)?.info : undefined
  return own?.role === "assistant" ? { providerID: own.providerID, modelID: own.modelID } : undefined
}

/** Reads everything of a session that may be passed on; items that cannot be read are named in the result. */
export const collectContext = async (
  { sessions, places, locate, findTask, readSpecification }: GatherDeps,
  call: { readonly sessionID: string; readonly messageID: string; readonly args: PassOverArguments },
) => {
  const { sessionID, messageID, args } = call
  const count = args.messages ?? DEFAULT_MESSAGES
  const folders = await places()
  const [files, page, todos, binding] = await Promise.all([
    Promise.all([...new Set(args.files ?? [])].map((path) => readFile(folders, locate(path)))),
    sessions.messages(sessionID, count + 1),
    sessions.todos(sessionID),
    findTask(sessionID),
  ])
  const specification = binding && (await readSpecification(binding.taskID))
  const words = binding ? renderUserWords(binding.said, { heading: `### ${WORDS_HEADING}` }) : ""
  const block = [specification, words, binding?.order].filter((text) => text !== undefined && text !== "").join("\n\n")
  const work = {
    objective: args.objective,
    background: args.background,
    expected: args.expected,
    files,
    messages: count === 0 ? [] : messagesOf(page, messageID).slice(-count),
    todos: todos.kind === "ok" ? todos.value.map(({ content, status }) => ({ content, status })) : [],
    task: binding ? { id: binding.taskID, role: binding.role, block: cutText(block, BLOCK_CHARACTERS) } : null,
  }
  return {
    fitToBudget: (maxTokens: number): WorkContext => buildWorkContext({ ...work, maxTokens }),
    /** In use there; undefined when the call's own message cannot be read. */
    model: modelOf(page, messageID),
  }
}

export type CollectedContext = Awaited<ReturnType<typeof collectContext>>

/** Approximate value for English text and code. */
const CHARACTERS_PER_TOKEN = 4
const TOOL_OUTPUT_CHARACTERS = 2_000
const MESSAGE_CHARACTERS = 4_000

type File = WorkContext["files"][number]
type Message = WorkContext["messages"][number]
type ToolResult = WorkContext["tool_results"][number]

type ContextParts = Pick<WorkContext, "objective" | "background" | "expected" | "files" | "todos" | "task"> & {
  /** Of the originator's session, oldest first. */
  readonly messages: readonly StoredMessage[]
  /** At four characters per token. */
  readonly maxTokens: number
}

const cut = (text: string, limit: number): string => (text.length > limit ? `${cutText(text, limit)}…` : text)

const readMessage = ({ info, parts }: StoredMessage): Message[] => {
  const text = (info.role === "user" ? collectUserText : collectText)(parts).trim()
  return text === "" ? [] : [{ role: info.role, text: cut(text, MESSAGE_CHARACTERS) }]
}

/** @returns nothing for a part that is not a finished tool call, and for this feature's own tools */
export const readToolResult = (part: Part): ToolResult[] => {
  if (part.type !== "tool" || part.tool.startsWith("pass_over")) return []
  const { tool, state } = part
  if (state.status === "error") return [{ tool, title: "", status: "error", output: state.error }]
  return state.status === "completed" ? [{ tool, title: state.title, status: "completed", output: state.output }] : []
}

/** Takes what fits, in order; names the rest. */
const createBudget = (characters: number) => {
  let left = characters
  const skipped: string[] = []
  const takes = (text: string, name: string): boolean => {
    const fits = text.length <= left
    if (fits) left -= text.length
    else skipped.push(name)
    return fits
  }
  return { skipped, takes }
}

/**
 * Builds the work context. Named files come first, then the newest tool results and messages. Items beyond the budget are left
 * out and named, so that the subagent can read them itself.
 */
export const buildWorkContext = (parts: ContextParts): WorkContext => {
  const { objective, background, expected, todos, task } = parts
  const fixed = [objective, background, expected, task?.block, JSON.stringify(todos)].join("").length
  const budget = createBudget(Math.max(0, parts.maxTokens * CHARACTERS_PER_TOKEN - fixed))
  const files = parts.files.map((file): File => {
    if (file.content === null || budget.takes(file.content, file.path)) return file
    return { ...file, content: null, note: "beyond the token budget: read it yourself" }
  })
  const newestFirst = parts.messages.toReversed()
  const results = newestFirst
    .flatMap((message) => message.parts.toReversed().flatMap(readToolResult))
    .map((result) => ({ ...result, output: cut(result.output, TOOL_OUTPUT_CHARACTERS) }))
    .filter(({ tool, title, output }, at) =>
      budget.takes(output, `tool result ${at + 1} from the end: ${tool} ${title}`),
    )
  const messages = newestFirst
    .flatMap(readMessage)
    .filter(({ role, text }, at) => budget.takes(text, `message ${at + 1} from the end (${role})`))
  return {
    objective,
    ...(background === undefined ? {} : { background }),
    ...(expected === undefined ? {} : { expected }),
    files,
    messages: messages.toReversed(),
    tool_results: results.toReversed(),
    todos,
    task,
    left_out: budget.skipped,
  }
}

/** Makes a code fence that the text cannot close. */
const fence = (text: string): string => {
  const longest = Math.max(2, ...[...text.matchAll(/`{3,}/g)].map(([run]) => run.length))
  const mark = "`".repeat(longest + 1)
  return `${mark}\n${text}${text.endsWith("\n") ? "" : "\n"}${mark}`
}

const section = (title: string, lines: readonly string[]): string[] =>
  lines.length === 0 ? [] : ["", `## ${title}`, ...lines]

const renderFile = ({ path, content, note }: WorkContext["files"][number]): string =>
  content === null ? `- ${path}: ${note ?? "not shown"}` : `### ${path}\n${fence(content)}`

export const renderOrder = (request: PassOverRequest): string => {
  const { work_context: work, originating_agent_id: originator } = request
  return [
    `The agent ${originator} passes this work over to you (${request.reason}).`,
    "",
    work.objective,
    ...(work.background === undefined ? [] : ["", `Background: ${work.background}`]),
    ...(work.expected === undefined ? [] : ["", `Expected back: ${work.expected}`]),
    "",
    "When you are done, call pass_over_return once with status, summary, and your decision and findings where there are any.",
    "Files that you change are seen by program: do not list them. After pass_over_return, end your turn.",
  ].join("\n")
}

/**
 * Renders the context that accompanies the order; undefined when there is none.
 *
 * @param skipped files that are missing in the subagent's sandbox
 */
export const renderContext = (
  { work_context: work }: PassOverRequest,
  skipped: readonly Skipped[],
): string | undefined => {
  const lines = [
    ...section(
      "In the project and not in your sandbox",
      skipped.map(({ path, reason }) => `- ${path}: ${reason}`),
    ),
    ...section("Task of the session", work.task ? [`${work.task.id} (${work.task.role})`, work.task.block] : []),
    ...section(
      "Todos of the originator",
      work.todos.map(({ content, status }) => `- [${status}] ${content}`),
    ),
    ...section("Files", work.files.map(renderFile)),
    ...section(
      "Recent messages of the originator's session",
      work.messages.map(({ role, text }) => `${role}:\n${fence(text)}`),
    ),
    ...section(
      "Recent tool results",
      work.tool_results.map(({ tool, title, status, output }) => `${tool} ${title} (${status}):\n${fence(output)}`),
    ),
    ...section(
      "Left out for lack of room",
      work.left_out.map((name) => `- ${name}`),
    ),
  ]
  return lines.length === 0 ? undefined : `# Context of the work\n${lines.join("\n")}`
}
