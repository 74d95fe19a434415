import type { Sessions, StoredMessage } from "../host/sessions.ts"
import type { LineSearch } from "./search-pattern.ts"
import type { ToolDetail } from "./tool-detail.ts"
import { renderMessage } from "./transcript.ts"

const CONTEXT_LINES = 2
const MAX_MATCHES = 40
const LINE_CHARACTERS = 400
const PAGE_MESSAGES = 100

const cutLine = (line: string, at: number): string => {
  if (line.length <= LINE_CHARACTERS) return line
  const start = Math.max(0, at - LINE_CHARACTERS / 2)
  return `${start > 0 ? "…" : ""}${line.slice(start, start + LINE_CHARACTERS)}…`
}

export type Match = { readonly messageID: string; readonly heading: string; readonly lines: readonly string[] }

/** The matching lines of one message with the lines around them; overlapping ones are shown once. */
export const matchesIn = (message: StoredMessage, find: LineSearch, detail: ToolDetail): Match[] => {
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
  let cursor: string | undefined
  let limit = PAGE_MESSAGES
  let searched = 0
  let isWhole = false
  while (!isOver() && matches.length < MAX_MATCHES) {
    const answer = await sessions.messages(sessionID, limit, cursor)
    if (answer.kind === "failed") return answer
    const { messages, older } = answer.value
    // Without cursors (1.2.15) the newest can only be asked for anew, and more of them.
    const fresh =
      cursor === undefined && searched > 0 ? messages.slice(0, Math.max(0, messages.length - searched)) : messages
    for (const message of fresh.toReversed()) matches.push(...matchesIn(message, find, detail).toReversed())
    searched += fresh.length
    if (older !== undefined) {
      cursor = older
      continue
    }
    isWhole = cursor !== undefined || messages.length < limit
    if (isWhole) break
    limit *= 10
  }
  const shown = matches.slice(0, MAX_MATCHES).toReversed()
  const texts = shown.map(({ messageID, heading, lines }) => [`${heading} (${messageID})`, ...lines].join("\n"))
  const more = matches.length > MAX_MATCHES || !isWhole
  const count = `${shown.length} ${shown.length === 1 ? "match" : "matches"} in the newest ${searched} messages`
  const footer = more
    ? `(${count}; older ones were not searched. Use a narrower search to see more.)`
    : `(${count}, which is the whole session. Use before: "<message id>" to read around one.)`
  return { kind: "found", text: [...texts, footer].join("\n\n"), matches: shown.length }
}
