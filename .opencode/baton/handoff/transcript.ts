import type { FilePart, Part, ToolPart } from "@opencode-ai/sdk"
import { collectText, collectUserText } from "../host/messages.ts"
import type { StoredMessage } from "../host/sessions.ts"
import { cutText, onOneLine } from "../host/text.ts"

/** Detail of a tool call in a transcript: nothing; its name and title; its input and output too. */
export const TOOL_DETAILS = ["none", "titles", "full"] as const
export type ToolDetail = (typeof TOOL_DETAILS)[number]

const TOOL_TEXT_CHARACTERS = 2_000
const ERROR_CHARACTERS = 300

const cut = (text: string, characters: number): string =>
  text.length > characters ? `${cutText(text, characters)} … (${text.length - characters} characters more)` : text

const oneLine = (text: string): string => cut(onOneLine(text), ERROR_CHARACTERS)

const block = (label: string, text: string): string => {
  const indented = cut(text.trimEnd(), TOOL_TEXT_CHARACTERS).replaceAll("\n", "\n  ")
  return `${label}:\n  ${indented}`
}

const renderTool = ({ tool, state }: ToolPart, detail: ToolDetail): string => {
  const title = "title" in state && state.title ? ` ${oneLine(state.title)}` : ""
  const line =
    state.status === "completed"
      ? `[Tool: ${tool}]${title}`
      : state.status === "error"
        ? `[Tool failed: ${tool}] ${oneLine(state.error)}`
        : `[Tool unfinished: ${tool}]${title}`
  if (detail !== "full") return line
  const output = state.status === "completed" ? state.output : state.status === "error" ? state.error : ""
  return [line, block("Input", JSON.stringify(state.input)), ...(output === "" ? [] : [block("Output", output)])].join(
    "\n",
  )
}

const renderText = (part: Part): string[] => [collectText([part]).trim()].filter((text) => text !== "")

/** A file without a name is pasted data: its URL may be megabytes long. */
const renderAttachment = ({ filename, mime, url }: FilePart): string =>
  `[Attached: ${oneLine(filename || (url.startsWith("data:") ? mime : url))}]`

const renderAssistantPart = (part: Part, detail: ToolDetail): string[] => {
  if (part.type === "text") return renderText(part)
  if (part.type === "tool") return detail === "none" ? [] : [renderTool(part, detail)]
  return []
}

const renderUserPart = (part: Part): string[] => {
  if (part.type === "text") return renderText(part)
  if (part.type === "file") return [renderAttachment(part)]
  if (part.type === "compaction") return ["[The session was compacted here]"]
  return []
}

/** Renders one message under its heading; undefined for one with only reasoning and synthetic parts. */
export const renderMessage = ({ info, parts }: StoredMessage, detail: ToolDetail): string | undefined => {
  if (info.role === "user") {
    const texts = parts.flatMap(renderUserPart)
    const isAgents = collectText(parts) !== "" && collectUserText(parts) === ""
    return texts.length === 0 ? undefined : [isAgents ? "## Another agent" : "## User", ...texts].join("\n")
  }
  const texts = parts.flatMap((part) => renderAssistantPart(part, detail))
  const reason = info.error?.data?.message
  if (info.error) texts.push(`[Failed: ${oneLine(`${info.error.name} ${typeof reason === "string" ? reason : ""}`)}]`)
  if (texts.length === 0) return undefined
  return [info.summary === true ? "## Assistant (summary of a compaction)" : "## Assistant", ...texts].join("\n")
}

/**
 * OpenCode cuts a tool's output at 50 KB and 2,000 lines and puts the rest into a file. A transcript stays below both, so that it
 * is cut between messages and says what is missing.
 */
export const MAX_TRANSCRIPT_BYTES = 48_000
export const MAX_TRANSCRIPT_LINES = 1_900

export type TranscriptPage = {
  /** Oldest first. */
  readonly messages: readonly StoredMessage[]
  readonly hasOlder: boolean
  readonly detail: ToolDetail
  readonly limit: number
  readonly maxLimit: number
  /** Set when the page ends before this message instead of at the session's end. */
  readonly before?: string | undefined
}

const footer = (page: TranscriptPage, shown: number, firstID: string | undefined): string => {
  const isAll = shown === page.messages.length
  if (isAll && !page.hasOlder) {
    return page.before === undefined
      ? `(End of session - ${shown} messages)`
      : `(Start of session - ${shown} messages before ${page.before})`
  }
  const what = page.before === undefined ? `${shown} most recent messages` : `${shown} messages before ${page.before}`
  // If the size limit cut the page, a higher `limit` shows no more.
  const advice = isAll && page.limit < page.maxLimit ? " Use a higher 'limit' to see more." : ""
  const older = firstID === undefined ? "" : `\n(Older ones: read_session with before: "${firstID}".)`
  return `(Showing ${what}.${advice})${older}`
}

const lineCount = (text: string): number => text.split("\n").length

const shortenMessage = (text: string): string => {
  const bytes = Buffer.from(text.split("\n", MAX_TRANSCRIPT_LINES).join("\n"))
  let end = Math.min(bytes.length, MAX_TRANSCRIPT_BYTES)
  // Not inside a character.
  while (end < bytes.length && ((bytes[end] ?? 0) & 0xc0) === 0x80) end--
  return `${bytes.toString("utf8", 0, end)}\n[cut: this message alone is longer than a transcript may be; search finds the rest of it]`
}

/** Renders the newest messages that fit, oldest first, and a line that says what is missing and how to read it. */
export const renderTranscript = (page: TranscriptPage): string => {
  const texts: string[] = []
  let bytes = 0
  let lines = 0
  let shown = 0
  for (const message of page.messages.toReversed()) {
    const text = renderMessage(message, page.detail)
    if (text !== undefined) {
      bytes += Buffer.byteLength(text) + 2
      lines += lineCount(text) + 1
      const isOver = bytes > MAX_TRANSCRIPT_BYTES || lines > MAX_TRANSCRIPT_LINES
      if (isOver && texts.length > 0) break
      texts.unshift(isOver ? shortenMessage(text) : text)
    }
    shown++
  }
  return [...texts, footer(page, shown, page.messages.at(-shown)?.info.id)].join("\n\n")
}
