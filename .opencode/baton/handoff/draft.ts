import type { GitState } from "../host/git.ts"
import { truncate } from "../host/log.ts"
import { isSummary } from "../host/messages.ts"
import { messagePages, type Sessions } from "../host/sessions.ts"
import { type Activity, activityOf, type Facts, renderFacts, type Step, stepsOf } from "../task/activity.ts"
import { collectUserText } from "../task/parse.ts"
import { closeFence, type FileReference, findCode, renderReference } from "./references.ts"

/** Facts about a whole session, read from the newest page back. */
type SessionHistory = {
  /** The user's first message, verbatim; undefined when it was not reached. */
  readonly firstRequest?: string
  readonly activity: Activity
  readonly compactions: number
  /** The reason why some messages were not read; undefined when all were. */
  readonly incomplete?: string
}

const PAGE_MESSAGES = 200

/** @param isOver asked before each page; when it is true, the pages read so far are used */
export const readHistory = async (
  sessions: Pick<Sessions, "messages">,
  sessionID: string,
  { root, isOver }: { root: string; isOver: () => boolean },
): Promise<SessionHistory> => {
  const pages: Step[][] = []
  let firstRequest: string | undefined
  let compactions = 0
  let incomplete: string | undefined = "it took too long"
  for await (const answer of messagePages(sessions, sessionID, { size: PAGE_MESSAGES, isOver })) {
    if (answer.kind === "failed") {
      incomplete = answer.reason
      break
    }
    const { messages, isOldest } = answer.value
    compactions += messages.filter(isSummary).length
    const users = messages.filter((message) => message.info.role === "user")
    firstRequest = users.map(({ parts }) => collectUserText(parts)).find((text) => text.trim() !== "") ?? firstRequest
    pages.unshift(messages.flatMap(stepsOf))
    if (isOldest) incomplete = undefined
  }
  return {
    ...(incomplete === undefined && firstRequest !== undefined ? { firstRequest } : {}),
    activity: activityOf(pages.flat(), root),
    compactions,
    ...(incomplete === undefined ? {} : { incomplete }),
  }
}

export type HandoffFacts = Facts & {
  /** Verbatim. */
  readonly firstRequest?: string
  /** Changed and not committed, relative to the worktree. */
  readonly dirtyFiles?: readonly string[]
  readonly git?: GitState
}

const FIRST_REQUEST_CHARACTERS = 4_000
const SHOWN_DIRTY_FILES = 40

const quote = (text: string): string =>
  text
    .split(/\r\n|\r|\n/)
    .map((line) => `> ${line}`.trimEnd())
    .join("\n")

const renderFirstRequest = (text: string): string => {
  const shown = truncate(text.trim(), FIRST_REQUEST_CHARACTERS)
  const rest = text.trim().length - shown.length
  const notice = rest > 0 ? `\n(${rest} characters more; read_session has them)` : ""
  return `## The user's first request, verbatim\n${quote(shown)}${notice}`
}

const renderDirtyFiles = (files: readonly string[]): string => {
  if (files.length === 0) return "- Not committed: nothing"
  const more = files.length > SHOWN_DIRTY_FILES ? `, and ${files.length - SHOWN_DIRTY_FILES} more` : ""
  return `- Not committed (${files.length}): ${files.slice(0, SHOWN_DIRTY_FILES).join(", ")}${more}`
}

/**
 * Renders the facts that a model tends to invent or forget. Every line of the user's request begins with `> `, so that none is
 * taken for a `Task:` line.
 */
export const renderHandoffFacts = ({ firstRequest, dirtyFiles, ...facts }: HandoffFacts): string =>
  [
    ...(firstRequest === undefined || firstRequest.trim() === "" ? [] : [renderFirstRequest(firstRequest)]),
    [renderFacts(facts), ...(dirtyFiles ? [renderDirtyFiles(dirtyFiles)] : [])].join("\n"),
  ].join("\n\n")

const MARKER_START = "Continuing work from session "
const MARKER_END = ". When you lack specific information you can use read_session to get it."
const MARKER =
  /Continuing work from session (ses_[A-Za-z0-9]{1,64})\. When you lack specific information you can use read_session to get it\./g

const QUOTATION = /^[ \t]*>/
/** The heading of a user's message in a transcript; the text behind it is a quotation. */
const USER_HEADING = /^[ \t]*#{1,6}[ \t]+User:?\s*$/

/** The first line of a draft. It identifies the handoff in the session where the draft is sent. */
export const renderMarker = (sessionID: string): string => `${MARKER_START}${sessionID}${MARKER_END}`

export type Marker = {
  /** The session that handed over. */
  readonly from: string
  /** True when only blanks precede it: the draft was sent unchanged, not quoted in a text. */
  readonly isFirst: boolean
}

/**
 * Finds the marker in a user's message. It may be anywhere, since a draft is put behind text the user had typed; but not in code,
 * in a quotation, or first under a transcript's heading. Linear in the length of the text.
 */
export const findMarker = (text: string): Marker | undefined => {
  if (!text.includes(MARKER_START)) return undefined
  const code = findCode(text)
  let region = 0
  let start = 0
  let lineBefore = ""
  for (const line of text.split("\n")) {
    for (const match of QUOTATION.test(line) ? [] : line.matchAll(MARKER)) {
      const at = start + match.index
      while ((code[region]?.end ?? Number.POSITIVE_INFINITY) <= at) region++
      const isCode = (code[region]?.start ?? Number.POSITIVE_INFINITY) <= at
      const isTranscript = USER_HEADING.test(lineBefore) && line.slice(0, match.index).trim() === ""
      if (!isCode && !isTranscript) return { from: match[1] ?? "", isFirst: text.slice(0, at).trim() === "" }
    }
    if (line.trim() !== "") lineBefore = line
    start += line.length + 1
  }
  return undefined
}

export type DraftParts = {
  readonly sessionID: string
  readonly files: readonly FileReference[]
  readonly prompt: string
  readonly task?: { readonly taskID: string; readonly heading: string }
  /** Facts gathered by program; see `renderHandoffFacts`. */
  readonly facts: string
}

/** Puts the text into a fence that it cannot close, so that no `@` in it counts; no line of it is a `Task:` line either. */
const fenced = (text: string): string => {
  let longest = 2
  for (const [run] of text.matchAll(/`+/g)) longest = Math.max(longest, run.length)
  const fence = "`".repeat(longest + 1)
  return `${fence}text\n${text.replaceAll(/^(?=Task:)/gm, " ")}\n${fence}`
}

export const renderDraft = ({ sessionID, files, prompt, task, facts }: DraftParts): string =>
  [
    renderMarker(sessionID),
    files.map(renderReference).join(" "),
    task ? `${task.heading}\n\nTask: ${task.taskID}` : "",
    closeFence(prompt.trim()),
    facts === "" ? "" : `What the session before shows (gathered by program):\n\n${fenced(facts)}`,
  ]
    .filter((part) => part !== "")
    .join("\n\n")
