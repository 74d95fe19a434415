import { DRAFT_START } from "../host/messages.ts"
import { redactedLine } from "../host/secrets.ts"
import { cutText } from "../host/text.ts"
import { type Facts, pathWithoutSecrets, renderFacts, renderTodos } from "../task/activity.ts"
import { fenced, quoteTaskLines } from "../task/parse.ts"
import { DRAFT_FACTS, NO_WORDS, renderUserWords, type TaskWords, WORDS_HEADING } from "../task/user-words.ts"
import { closeFence, type FileReference, findCode, renderReference } from "./references.ts"

type LedgerTask = {
  readonly taskID: string
  readonly definitionOfDone?: string | undefined
  readonly specification: string
}

export type HandoffFacts = Facts & {
  /** The task as the ledger has it. */
  readonly task?: LedgerTask | undefined
  /** The user's words in the session, and in those it was handed over from. */
  readonly said?: TaskWords | undefined
  /** Changed and not committed, relative to the worktree. */
  readonly dirtyFiles?: readonly string[] | undefined
}

const DEFINITION_OF_DONE_CHARACTERS = 2_000
const SPECIFICATION_CHARACTERS = 6_000
const WORDS_CHARACTERS = 8_000
const GOAL_CHARACTERS = 2_000
const SHOWN_DIRTY_FILES = 40

/** @param source where the rest is */
const cut = (text: string, characters: number, source: string): string => {
  const shown = cutText(text.trim(), characters)
  const rest = text.trim().length - shown.length
  return `${shown}${rest > 0 ? `\n(${rest} characters more; ${source} has them)` : ""}`
}

const section = (heading: string, text: string): string[] => (text.trim() === "" ? [] : [`## ${heading}\n${text}`])

const renderTask = ({ taskID, definitionOfDone = "", specification }: LedgerTask): string[] => {
  const source = `prog show ${taskID}`
  return [
    ...section("Definition of done", cut(definitionOfDone, DEFINITION_OF_DONE_CHARACTERS, source)),
    ...section("Specification", cut(specification, SPECIFICATION_CHARACTERS, source)),
  ]
}

const renderWords = (said: TaskWords): string[] => {
  const fits = (text: string): boolean => text.length <= WORDS_CHARACTERS
  return [renderUserWords(said, { heading: `## ${WORDS_HEADING}`, fits })].filter((text) => text !== "")
}

const renderDirtyFiles = (files: readonly string[]): string => {
  if (files.length === 0) return "- Not committed: nothing"
  const more = files.length > SHOWN_DIRTY_FILES ? `, and ${files.length - SHOWN_DIRTY_FILES} more` : ""
  return `- Not committed (${files.length}): ${files.slice(0, SHOWN_DIRTY_FILES).map(pathWithoutSecrets).join(", ")}${more}`
}

/** Renders what a model tends to invent or forget. */
export const renderHandoffFacts = (given: HandoffFacts): string => {
  const { task, said = NO_WORDS, dirtyFiles, ...facts } = given
  return [
    ...(task ? renderTask(task) : []),
    ...renderWords(said),
    [renderFacts(facts), ...(dirtyFiles ? [renderDirtyFiles(dirtyFiles)] : []), renderTodos(facts.todos)]
      .filter((text) => text !== "")
      .join("\n"),
  ].join("\n\n")
}

const MARKER_END = ". When you lack specific information you can use read_session to get it."
const MARKER =
  /Continuing work from session (ses_[A-Za-z0-9]{1,64})\. When you lack specific information you can use read_session to get it\./g

const QUOTATION = /^[ \t]*>/
/** The heading of a user's message in a transcript; the text behind it is a quotation. */
const USER_HEADING = /^[ \t]*#{1,6}[ \t]+User:?\s*$/

/** The first line of a draft. It identifies the handoff in the session where the draft is sent. */
export const renderMarker = (sessionID: string): string => `${DRAFT_START}${sessionID}${MARKER_END}`

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
  if (!text.includes(DRAFT_START)) return undefined
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
  /** Typed by the user after /handoff; empty for nothing. */
  readonly goal: string
  /** Written by the model. */
  readonly prompt: string
  readonly task?: { readonly taskID: string; readonly heading: string } | undefined
  /** Facts gathered by program; see `renderHandoffFacts`. */
  readonly facts: string
}

/** In one line and as code, so that nothing in it is a reference, a marker or a `Task:` line. */
const renderGoal = (goal: string): string => {
  const line = redactedLine(goal, GOAL_CHARACTERS).replaceAll("`", "'")
  return line === "" ? "" : `Goal, as the user gave it: \`${line}\``
}

export const renderDraft = ({ sessionID, files, goal, prompt, task, facts }: DraftParts): string =>
  [
    renderMarker(sessionID),
    files.map(renderReference).join(" "),
    task ? `${task.heading}\n\nTask: ${task.taskID}`.trim() : "",
    renderGoal(goal),
    closeFence(quoteTaskLines(prompt.trim())),
    facts === "" ? "" : `${DRAFT_FACTS}\n\n${fenced(facts)}`,
  ]
    .filter((part) => part !== "")
    .join("\n\n")
