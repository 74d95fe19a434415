import { cutText } from "../host/log.ts"
import { pagesBack, type Sessions, type StoredMessage } from "../host/sessions.ts"
import type { LineSearch } from "./search-pattern.ts"
import type { ToolDetail } from "./tool-detail.ts"
import { MAX_TRANSCRIPT_BYTES, renderMessage } from "./transcript.ts"

const CONTEXT_LINES = 2
const MAX_MATCHES = 40
const LINE_CHARACTERS = 400
const SEARCH_PAGE_MESSAGES = 100

const cutLine = (line: string, at: number): string => {
  if (line.length <= LINE_CHARACTERS) return line
  const start = Math.max(0, at - LINE_CHARACTERS / 2)
  // Half a character stands at neither end.
  const shown = cutText(line.slice(start).replace(/^[\uDC00-\uDFFF]/, ""), LINE_CHARACTERS)
  return `${start > 0 ? "…" : ""}${shown}…`
}

type Match = { readonly messageID: string; readonly heading: string; readonly lines: readonly string[] }

/** The matching lines of one message with the lines around them; overlapping ones are shown once. */
const matchesIn = (message: StoredMessage, find: LineSearch, detail: ToolDetail): Match[] => {
  const text = renderMessage(message, detail)
  if (text === undefined) return []
  const [heading = "", ...lines] = text.split("\n")
  const matches: Match[] = []
  let shownTo = -1
  for (const [index, line] of lines.entries()) {
    if (index <= shownTo) continue
    const at = find(line)
    if (at < 0) continue
    const from = Math.max(shownTo + 1, index - CONTEXT_LINES)
    shownTo = index + CONTEXT_LINES
    const around = lines.slice(from, shownTo + 1).map((each, offset) => {
      const isMatch = from + offset === index
      return `${isMatch ? "> " : "  "}${cutLine(each, isMatch ? at : 0)}`
    })
    matches.push({ messageID: message.info.id, heading, lines: around })
  }
  return matches
}

/** As many of the newest as a tool's answer may hold, the oldest of them first. @param matches newest first */
const newestThatFit = (matches: readonly Match[]): string[] => {
  const texts: string[] = []
  let bytes = 0
  for (const { messageID, heading, lines } of matches.slice(0, MAX_MATCHES)) {
    const text = [`${heading} (${messageID})`, ...lines].join("\n")
    bytes += Buffer.byteLength(text) + 2
    if (bytes > MAX_TRANSCRIPT_BYTES) break
    texts.unshift(text)
  }
  return texts
}

export type SearchResult =
  | { readonly kind: "found"; readonly text: string; readonly matches: number }
  | { readonly kind: "failed"; readonly reason: string; readonly missing?: boolean }

/** Searches a session from the newest message back, page by page. @param isOver asked before each page */
export const searchSession = async (
  sessions: Pick<Sessions, "messages">,
  sessionID: string,
  { find, detail, isOver }: { find: LineSearch; detail: ToolDetail; isOver: () => boolean },
): Promise<SearchResult> => {
  const matches: Match[] = []
  let searched = 0
  let isWhole = false
  for await (const answer of pagesBack(sessions, sessionID, { size: SEARCH_PAGE_MESSAGES, isOver })) {
    if (answer.kind === "failed") return answer
    const { messages, isOldest } = answer.value
    for (const message of messages.toReversed()) matches.push(...matchesIn(message, find, detail).toReversed())
    searched += messages.length
    isWhole = isOldest
    if (matches.length >= MAX_MATCHES) break
  }
  const texts = newestThatFit(matches)
  const more = matches.length > texts.length || !isWhole
  const count = `${texts.length} ${texts.length === 1 ? "match" : "matches"} in the newest ${searched} messages`
  const footer = more
    ? `(${count}; older ones were not searched. Use a narrower search to see more.)`
    : `(${count}, which is the whole session. Use before: "<message id>" to read around one.)`
  return { kind: "found", text: [...texts, footer].join("\n\n"), matches: texts.length }
}
