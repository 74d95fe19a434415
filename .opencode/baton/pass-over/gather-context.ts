import { createHash } from "node:crypto"
import { cutText } from "../host/log.ts"
import { readProjectFile } from "../host/project-file.ts"
import type { Answer, MessagePage, MessageTarget, Sessions, StoredMessage } from "../host/sessions.ts"
import type { TaskBinding } from "../task/registry.ts"
import type { WorkContext } from "./contract.ts"
import type { PassOverArguments } from "./tool-arguments.ts"
import { buildWorkContext, type File } from "./work-context.ts"

const DEFAULT_MESSAGES = 4
const BLOCK_CHARACTERS = 6_000

export type GatherDeps = {
  readonly sessions: Pick<Sessions, "messages" | "todos">
  /** Real paths: of the folder that files must lie in, and of the one that relative paths are taken from. */
  readonly places: () => Promise<{ root: string; base: string }>
  /** Where a path that was asked for lies, for an originator that works elsewhere than it seems. */
  readonly locate: (path: string) => string
  readonly findTask: (sessionID: string) => Promise<TaskBinding | undefined>
  /** What the ledger has on a task; undefined when it cannot be read. */
  readonly readSpecification: (taskID: string) => Promise<string | undefined>
}

const readFile = async (places: { root: string; base: string }, path: string): Promise<File> => {
  const file = await readProjectFile(places, path)
  if (file.kind !== "file") return { path, content: null, hash: null, note: file.reason }
  return { path: file.path, content: file.text, hash: createHash("sha256").update(file.text).digest("hex") }
}

const messagesOf = (page: Answer<MessagePage>, messageID: string): StoredMessage[] =>
  // The message that makes this very call says nothing that is finished.
  page.kind === "answer" ? page.value.messages.filter(({ info }) => info.id !== messageID) : []

/** The work of a session as it is passed on, cut to a budget, and the model that works there. */
export type GatheredContext = {
  readonly toContext: (maxTokens: number) => WorkContext
  /** undefined when the call's own message cannot be read. */
  readonly model: MessageTarget["model"] | undefined
}

const modelOf = (page: Answer<MessagePage>, messageID: string): MessageTarget["model"] | undefined => {
  const own = page.kind === "answer" ? page.value.messages.find(({ info }) => info.id === messageID)?.info : undefined
  return own?.role === "assistant" ? { providerID: own.providerID, modelID: own.modelID } : undefined
}

/** Reads all that may be passed on; what cannot be read is named in it. */
export const gatherContext = async (
  { sessions, places, locate, findTask, readSpecification }: GatherDeps,
  call: { readonly sessionID: string; readonly messageID: string; readonly args: PassOverArguments },
): Promise<GatheredContext> => {
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
  const block = [specification, binding?.brief].filter((text) => text !== undefined && text !== "").join("\n\n")
  const work = {
    objective: args.objective,
    background: args.background,
    expected: args.expected,
    files,
    messages: count === 0 ? [] : messagesOf(page, messageID).slice(-count),
    todos: todos.kind === "answer" ? todos.value.map(({ content, status }) => ({ content, status })) : [],
    task: binding ? { id: binding.taskID, role: binding.role, block: cutText(block, BLOCK_CHARACTERS) } : null,
  }
  return {
    toContext: (maxTokens) => buildWorkContext({ ...work, maxTokens }),
    model: modelOf(page, messageID),
  }
}
