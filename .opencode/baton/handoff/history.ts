import { collectUserText, isSummary, splitLines } from "../host/messages.ts"
import { messagePages, type Sessions } from "../host/sessions.ts"
import { type Activity, activityOf, type Step, stepsOf } from "../task/activity.ts"
import { extractBrief, parseRole } from "../task/parse.ts"
import { findMarker, renderMarker } from "./draft.ts"

/** Facts about a whole session, read from the newest page back. */
type SessionHistory = {
  /** The user's messages, verbatim, oldest first; without synthetic parts. */
  readonly userTexts: readonly string[]
  readonly activity: Activity
  readonly compactions: number
  /** The reason why some messages were not read; undefined when all were. */
  readonly incomplete: string | undefined
}

const PAGE_MESSAGES = 200

/** @param isOver asked before each page; when it is true, the pages read so far are used */
export const readHistory = async (
  sessions: Pick<Sessions, "messages">,
  sessionID: string,
  { root, isOver }: { root: string; isOver: () => boolean },
): Promise<SessionHistory> => {
  const pages: Step[][] = []
  const texts: string[][] = []
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
    texts.unshift(users.map(({ parts }) => collectUserText(parts)).filter((text) => text.trim() !== ""))
    pages.unshift(messages.flatMap(stepsOf))
    if (isOldest) incomplete = undefined
  }
  return { userTexts: texts.flat(), activity: activityOf(pages.flat(), root), compactions, incomplete }
}

/** The user's own words of a session, and of those it was handed over from. */
type Requests = {
  /** Undefined if the session was not read to its beginning. */
  readonly first?: string | undefined
  /** Oldest first. */
  readonly later: readonly string[]
}

/** The draft that began a session, and the requests it was made with. */
export type EarlierRequests = { readonly draft: string; readonly requests: Requests }

/** The text without a role prompt or its heading: the draft has the role. */
const withoutRolePrompt = (text: string): string => {
  const lines = splitLines(extractBrief(text))
  const start = lines.findIndex((line) => line.trim() !== "" && parseRole(line) === undefined)
  return start < 0 ? "" : lines.slice(start).join("\n").trim()
}

/** The words around a draft: what stands before its first line, and, if it was not edited, what stands behind it. */
const wordsAround = (text: string, draft: string, from: string): string => {
  const at = text.indexOf(draft.trim())
  if (at < 0) return text.slice(0, Math.max(0, text.indexOf(renderMarker(from)))).trim()
  return [text.slice(0, at), text.slice(at + draft.trim().length)]
    .map((part) => part.trim())
    .join("\n")
    .trim()
}

/**
 * @param texts the user's messages, oldest first
 * @param options `isComplete`: the first text is the session's first message; `isCommand`: the text is that of our command, and
 *   not the user's; `earlier`: of a session that began with a draft
 */
export const collectRequests = (
  texts: readonly string[],
  options: {
    isComplete: boolean
    isCommand: (text: string) => boolean
    earlier?: EarlierRequests | undefined
  },
): Requests => {
  const { isComplete, isCommand, earlier } = options
  const typed = texts.filter((text) => text.trim() !== "" && !isCommand(text))
  const marker = isComplete ? findMarker(typed[0] ?? "") : undefined
  if (earlier && (marker || !isComplete)) {
    const around = marker ? [wordsAround(typed[0] ?? "", earlier.draft, marker.from)] : []
    const own = [...around, ...typed.slice(marker ? 1 : 0).map(withoutRolePrompt)].filter((text) => text !== "")
    return { ...earlier.requests, later: [...earlier.requests.later, ...own] }
  }
  const words = typed.map(withoutRolePrompt).filter((text) => text !== "")
  const [first, ...later] = words
  return isComplete && first !== undefined ? { first, later } : { later: words }
}
