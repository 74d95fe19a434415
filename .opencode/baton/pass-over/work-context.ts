import type { Part } from "@opencode-ai/sdk"
import { cutText } from "../host/log.ts"
import type { StoredMessage } from "../host/sessions.ts"
import { collectUserText } from "../task/parse.ts"
import type { WorkContext } from "./contract.ts"

/** Roughly what a token is in English text and code. */
const CHARACTERS_PER_TOKEN = 4
const TOOL_OUTPUT_CHARACTERS = 2_000
const MESSAGE_CHARACTERS = 4_000

export type File = WorkContext["files"][number]
type Message = WorkContext["messages"][number]
type ToolResult = WorkContext["tool_results"][number]

export type ContextParts = {
  readonly objective: string
  readonly background?: string | undefined
  readonly expected?: string | undefined
  readonly files: readonly File[]
  /** Of the originator's session, oldest first. */
  readonly messages: readonly StoredMessage[]
  readonly todos: WorkContext["todos"]
  readonly task: WorkContext["task"]
  /** A token is four characters here. */
  readonly maxTokens: number
}

const cut = (text: string, limit: number): string => (text.length > limit ? `${cutText(text, limit)}…` : text)

const readMessage = ({ info, parts }: StoredMessage): Message[] => {
  const text = collectUserText(parts).trim()
  return text === "" ? [] : [{ role: info.role, text: cut(text, MESSAGE_CHARACTERS) }]
}

/** @returns nothing for a part that is no finished tool call, and for this feature's own tools */
export const readToolResult = (part: Part): ToolResult[] => {
  if (part.type !== "tool" || part.tool.startsWith("pass_over")) return []
  const { tool, state } = part
  if (state.status === "error") return [{ tool, title: "", status: "error", output: state.error }]
  return state.status === "completed" ? [{ tool, title: state.title, status: "completed", output: state.output }] : []
}

/** Takes what fits, in order; what does not is named. */
const createBudget = (characters: number) => {
  let left = characters
  const leftOut: string[] = []
  const takes = (text: string, name: string): boolean => {
    const fits = text.length <= left
    if (fits) left -= text.length
    else leftOut.push(name)
    return fits
  }
  return { leftOut, takes }
}

/**
 * The work as it is passed on. The named files come first, then the newest tool results and messages; what is beyond the
 * budget is left out and named, so that the subagent can read it for itself.
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
    left_out: budget.leftOut,
  }
}
