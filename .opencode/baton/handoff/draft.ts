import { closeFence, findCode } from "./code-regions.ts"
import { type FileReference, renderReference } from "./reference.ts"

const MARKER_START = "Continuing work from session "
const MARKER_END = ". When you lack specific information you can use read_session to get it."
const MARKER =
  /Continuing work from session (ses_[A-Za-z0-9]{1,64})\. When you lack specific information you can use read_session to get it\./g

const QUOTATION = /^[ \t]*>/
/** How a transcript introduces a user's message; what follows it was not written here. */
const USER_HEADING = /^[ \t]*#{1,6}[ \t]+User:?\s*$/

/** The first line of a draft, by which the session it is sent in is recognised. */
export const renderMarker = (sessionID: string): string => `${MARKER_START}${sessionID}${MARKER_END}`

export type Marker = {
  /** The session that was handed over. */
  readonly from: string
  /** Whether only blanks stand before it: the draft was sent as it came, not quoted somewhere in a text. */
  readonly isFirst: boolean
}

/**
 * The marker in a user's message: anywhere, since text the user had typed stays and lands before the draft; but not in
 * code, in a quotation, or first under a transcript's heading. Linear in the length of the text.
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
  /** What the model wrote. */
  readonly prompt: string
  readonly task?: { readonly taskID: string; readonly heading: string }
  /** What is known by program; see handoff-facts.ts. */
  readonly facts: string
}

/** A fence that nothing in the text can close, so that no `@` in it counts; no line of it is a `Task:` line either. */
const fenced = (text: string): string => {
  let longest = 2
  for (const [run] of text.matchAll(/`+/g)) longest = Math.max(longest, run.length)
  const fence = "`".repeat(longest + 1)
  return `${fence}text\n${text.replaceAll(/^(?=Task:)/gm, " ")}\n${fence}`
}

/** The message with which the work goes on in a new session. */
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
