import { randomBytes } from "node:crypto"
import type { Part } from "@opencode-ai/sdk"
import { isRecord } from "./schema.ts"
import type { StoredMessage } from "./sessions.ts"
import { shorten } from "./text.ts"

/** The fields needed to judge the text of a message part. OpenCode's `Part` fits. */
type TextPartLike = {
  readonly type: string
  readonly text?: string | undefined
  readonly synthetic?: boolean | undefined
  readonly ignored?: boolean | undefined
}

/**
 * Collects the text of one message: its text parts, joined by line breaks, without those that OpenCode or a plugin added
 * (`synthetic`) and those the model never sees (`ignored`). Empty if there are none.
 */
export const collectText = (parts: readonly TextPartLike[]): string =>
  parts
    .filter((part) => part.type === "text" && part.synthetic !== true && part.ignored !== true)
    .map((part) => part.text ?? "")
    .join("\n")

/** Another agent's message comes as a user's turn from c2c, or from Baton for it. */
const isAgentsMessage = ({ text }: TextPartLike): boolean => /^\s*<c2c event="message"/.test(text ?? "")

/**
 * Collects the user's own text of one message: the same without messages of other agents, which are no user's words.
 *
 * Pass the parts of a user message only: an assistant's text parts look the same.
 */
export const collectUserText = (parts: readonly TextPartLike[]): string =>
  collectText(parts.filter((part) => !isAgentsMessage(part)))

const textsOf = (parts: readonly TextPartLike[]): string[] =>
  parts.flatMap(({ type, text = "" }) => (type === "text" && text.trim() !== "" ? [text] : []))

/** A command's message shares the text that the command expanded to. */
export const sharesText = (some: readonly TextPartLike[], others: readonly TextPartLike[]): boolean => {
  const texts = textsOf(some)
  return textsOf(others).some((text) => texts.includes(text))
}

/** Of `/handoff`'s template, and of an answer to `/task`; both are the program's. */
export const OWN_COMMAND_TEXT = /^(?:(?:# )?Hand this work over to a new session\b|\/task\n)/

/** The start of every draft of `/handoff`. */
export const DRAFT_START = "Continuing work from session "

/** More of it, since a user may write the first few words. */
export const DRAFT_BEGIN = /Continuing work from session ses_\w{1,64}\. When you lack /

export const splitLines = (text: string): string[] => text.split(/\r\n|\r|\n/)

export type CompletedCompaction = {
  /** The user message with the `compaction` part, which the model reads as "What did we do so far?". */
  requestID: string
  summaryID: string
  /** Start of the summary in epoch ms; a copy in a fork keeps it. */
  createdAt: number
  /** The trimmed text; empty if the summariser wrote nothing. */
  summary: string
}

const isRequest = (message: StoredMessage): boolean =>
  message.info.role === "user" && message.parts.some((part) => part.type === "compaction")

/** OpenCode's own rule for a valid summary: finished and without error. */
export const isSummary = ({ info }: StoredMessage): boolean =>
  info.role === "assistant" && info.summary === true && info.finish !== undefined && info.error === undefined

const textOf = (message: StoredMessage): string =>
  message.parts
    .flatMap((part) => (part.type === "text" ? [part.text.trim()] : []))
    .filter((text) => text !== "")
    .join("\n\n")

/**
 * Compares ids, which grow with time. The order is no guide: the newest turns, and with them an older compaction, may follow
 * a summary verbatim (seen on 1.14.41).
 */
const findNewest = (
  messages: readonly StoredMessage[],
  isWanted: (message: StoredMessage) => boolean,
): StoredMessage | undefined =>
  messages
    .filter(isWanted)
    .reduce<StoredMessage | undefined>(
      (newest, message) => (newest && newest.info.id > message.info.id ? newest : message),
      undefined,
    )

export const latestCompaction = (messages: readonly StoredMessage[]): CompletedCompaction | undefined => {
  const summary = findNewest(messages, isSummary)
  if (summary?.info.role !== "assistant") return undefined
  const { id, parentID, time } = summary.info
  return { requestID: parentID, summaryID: id, createdAt: time.created, summary: textOf(summary) }
}

/**
 * Messages go to the summariser while the newest compaction request has no summary. If a failed request is repeated, its
 * summary belongs to the user's message that followed.
 */
export const isSummaryRequest = (messages: readonly StoredMessage[]): boolean => {
  const request = findNewest(messages, isRequest)?.info
  if (!request) return false
  const isItsSummary = ({ info }: StoredMessage): boolean =>
    info.id > request.id || (info.role === "assistant" && info.parentID === request.id)
  return !messages.some((message) => isSummary(message) && isItsSummary(message))
}

/**
 * For the compacting hook: OpenCode shows the summariser the previous summary by itself, or not, by its version.
 *
 * Up to 1.3.x the summary message is created before that hook, and the previous summary stays in the conversation. From 1.14
 * on it is created after the hook, and a replaced prompt lacks the previous summary. So an unfinished summary as the newest
 * message means the older behaviour (seen on 1.2.15 and 1.18.33, read in the code of 1.3.2, 1.14.41 and 1.18.10).
 * An unfinished summary further back was cut off by a kill and means nothing.
 *
 * @param messages the newest of the session, the newest last
 */
export const showsPreviousSummary = (messages: readonly StoredMessage[]): boolean => {
  const newest = messages.at(-1)?.info
  return newest?.role === "assistant" && newest.summary === true && newest.time.completed === undefined
}

const ONE_LINE_CHARACTERS = 200

/** The summary in one line for the log: its first line that is no heading, without markdown, at most 200 characters. */
export const summaryLine = (summary: string): string => {
  const lines = splitLines(summary).map((line) => ({
    text: line.replace(/^[\s#>*+-]+/, "").trim(),
    isHeading: /^\s*#/.test(line),
  }))
  const filled = lines.filter(({ text }) => text !== "")
  const chosen = (filled.find(({ isHeading }) => !isHeading) ?? filled[0])?.text ?? ""
  return shorten(chosen, ONE_LINE_CHARACTERS)
}

const NOTE_ID = "prt_baton"

/** The text of a note that Baton added to this request; undefined for any other part. */
export const noteTextOf = (part: Part): string | undefined =>
  part.type === "text" && part.synthetic === true && part.id.startsWith(NOTE_ID) ? part.text : undefined

/** A note for one model request, as a part of this message. */
export const createNote = ({ id: messageID, sessionID }: StoredMessage["info"], text: string): Part => {
  const id = `${NOTE_ID}${randomBytes(8).toString("hex")}`
  return { id, sessionID, messageID, type: "text", synthetic: true, text }
}

/** Adds the note to a message of one model request. The stored message does not change. */
export const appendNote = (messages: StoredMessage[], messageID: string, note: string): void => {
  const message = messages.find(({ info }) => info.id === messageID)
  if (!message || message.parts.some((part) => part.type === "text" && part.text === note)) return
  message.parts.push(createNote(message.info, note))
}

/** Undoes `disableTools` for one tool of this request. */
export const enableTool = (messages: readonly StoredMessage[], name: string): void => {
  const newest = messages.findLast(({ info }) => info.role === "user")?.info
  if (newest?.role !== "user" || newest.tools?.[name] !== false) return
  const { [name]: _, ...others } = newest.tools
  newest.tools = others
}

/**
 * Leaves tools out of one request. OpenCode drops a tool that is false in `tools` of the newest user message; changing the
 * outgoing message does not change the stored one (docs/adr/0005).
 */
export const disableTools = (messages: readonly StoredMessage[], names: readonly string[]): void => {
  const newest = messages.findLast(({ info }) => info.role === "user")?.info
  if (newest?.role !== "user" || names.length === 0) return
  newest.tools = { ...newest.tools, ...Object.fromEntries(names.map((name) => [name, false])) }
}

/** OpenCode's tools that change the one file they name; `multiedit` is from older versions. */
export const EDITING_TOOLS: ReadonlySet<string> = new Set(["edit", "write", "multiedit"])
/** Tools that name their files inside a patch; `patch` is from older versions. */
export const PATCH_TOOLS: ReadonlySet<string> = new Set(["apply_patch", "patch"])

/**
 * Lines of a patch that name a file; every other line begins with a space, a sign or an @. As in OpenCode, `\n` alone ends a
 * line, and white space around the path, or none, does not count (seen in 1.2.15 and 1.18.33).
 */
export const PATCH_PATH =
  /(?<![^\n])(\*\*\* (?:Add File|Update File|Delete File|Move to):[^\S\n]*)(\S(?:[^\n]*\S)?)([^\S\n]*)(?![^\n])/g

/** OpenCode's own tools that write files. */
export const WRITING_TOOLS: ReadonlySet<string> = new Set([...EDITING_TOOLS, ...PATCH_TOOLS])

const pathOf = (value: unknown): string[] =>
  isRecord(value) && typeof value.filePath === "string" ? [value.filePath] : []

type Arguments = Readonly<Record<string, unknown>>

const pathsOfPatch = ({ patchText }: Arguments, header = ""): string[] =>
  typeof patchText === "string"
    ? [...patchText.matchAll(PATCH_PATH)].flatMap(([, start = "", path]) =>
        path && start.includes(header) ? path : [],
      )
    : []

/** Returns the files that a call of a writing tool names. */
export const pathsToWrite = (tool: string, args: Arguments): string[] => {
  if (!WRITING_TOOLS.has(tool)) return []
  const edits = Array.isArray(args.edits) ? args.edits.flatMap(pathOf) : []
  return [...pathOf(args), ...edits, ...pathsOfPatch(args)]
}

/** Returns the new paths of files that a patch moves. */
export const movesTo = (args: Arguments): string[] => pathsOfPatch(args, "Move to")
