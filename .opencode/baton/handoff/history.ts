import { isSummary } from "../host/messages.ts"
import { messagePages, type Sessions } from "../host/sessions.ts"
import { type Activity, activityOf, type Step, stepsOf } from "../task/activity.ts"
import { wordsOf } from "../task/task-search.ts"
import { NO_WORDS, type TaskWords, type UserWords, withWords } from "../task/user-words.ts"

/** Facts about a whole session, read from the newest page back. */
type SessionHistory = {
  /** The user's words that were not undone, oldest first. */
  readonly words: readonly UserWords[]
  readonly activity: Activity
  readonly compactions: number
  /** The reason why some messages were not read; undefined when all were. */
  readonly incomplete: string | undefined
}

const PAGE_MESSAGES = 200

/** @param shouldStop asked before each page; when it is true, the pages read so far are used */
export const readHistory = async (
  sessions: Pick<Sessions, "messages">,
  sessionID: string,
  { root, shouldStop }: { root: string; shouldStop: () => boolean },
): Promise<SessionHistory> => {
  const pages: Step[][] = []
  const words: UserWords[][] = []
  let compactions = 0
  let incomplete: string | undefined = "it took too long"
  for await (const answer of messagePages(sessions, sessionID, { size: PAGE_MESSAGES, shouldStop })) {
    if (answer.kind === "failed") {
      incomplete = answer.reason
      break
    }
    const { messages, isOldest } = answer.value
    compactions += messages.filter(isSummary).length
    words.unshift(wordsOf(messages))
    pages.unshift(messages.flatMap(stepsOf))
    if (isOldest) incomplete = undefined
  }
  return { words: words.flat(), activity: activityOf(pages.flat(), root), compactions, incomplete }
}

/**
 * Joins what the user said in this session with what was kept: of earlier sessions of the chain, and of this one since it has its
 * task, where commands are told from their templates.
 *
 * @param read of the session's messages @param isCommand whether a text is that of our command, and not the user's
 */
export const joinWords = (
  read: readonly UserWords[],
  kept: readonly TaskWords[],
  isCommand: (text: string) => boolean,
): TaskWords => {
  const sessionID = read[0]?.sessionID
  const since = kept
    .flatMap(({ words }) => words.filter((one) => one.sessionID === sessionID))
    .map(({ at }) => at)
    .sort()[0]
  const own = read.filter(({ at, text }) => (since === undefined || at < since) && !isCommand(text))
  return kept.reduce(
    (all, { words, leftOut }) => {
      const joined = withWords(all, words)
      return { ...joined, leftOut: joined.leftOut + leftOut }
    },
    withWords(NO_WORDS, own),
  )
}
