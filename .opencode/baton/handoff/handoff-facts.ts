import type { GitState } from "../host/git.ts"
import { cutText } from "../host/log.ts"
import { type Facts, renderFacts } from "../task/activity.ts"

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
  const shown = cutText(text.trim(), FIRST_REQUEST_CHARACTERS)
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
 * What the model tends to invent or to forget, as one text. Every line of the user's begins with `> `, so that none can
 * be taken for a `Task:` line.
 */
export const renderHandoffFacts = ({ firstRequest, dirtyFiles, ...facts }: HandoffFacts): string =>
  [
    ...(firstRequest === undefined || firstRequest.trim() === "" ? [] : [renderFirstRequest(firstRequest)]),
    [renderFacts(facts), ...(dirtyFiles ? [renderDirtyFiles(dirtyFiles)] : [])].join("\n"),
  ].join("\n\n")
