import type { Sessions, StoredMessage } from "../host/sessions.ts"
import { type ParsedTask, parseTask } from "./parse.ts"
import { collectUserText } from "./user-text.ts"

/** A page is small enough to cost 5–35 ms whatever the session's length (measured at 10,000 messages on 1.18.33). */
const PAGE_MESSAGES = 50
/** OpenCode before cursors (1.2.15 among them) can only be asked for more of the newest. */
const WIDER_PAGE_MESSAGES = 400

export type HistorySearch =
  | { kind: "found"; task: ParsedTask; text: string }
  /**
   * Nothing in what was read; `complete` says whether that was everything, `isCutShort` whether more could have been read,
   * and `unread` where. `firstText` is the oldest user text read.
   */
  | { kind: "nothing"; complete: boolean; isCutShort: boolean; unread?: string; firstText?: string }
  | { kind: "failed"; reason: string }

type Read = { task: ParsedTask; text: string } | undefined

const newestTask = (messages: readonly StoredMessage[]): Read => {
  for (const message of messages.toReversed()) {
    if (message.info.role !== "user") continue
    const text = collectUserText(message.parts)
    const task = parseTask(text)
    if (task) return { task, text }
  }
  return undefined
}

const oldestUserText = (messages: readonly StoredMessage[]): string | undefined => {
  for (const message of messages) {
    if (message.info.role !== "user") continue
    const text = collectUserText(message.parts)
    if (text !== "") return text
  }
  return undefined
}

/**
 * Finds a session's newest `Task:` line in its stored messages, page by page from the newest back, until `isOver()`.
 *
 * For a session that was running before the bundle was there. Never reads the whole history at once.
 *
 * @param from the `unread` of an earlier search
 */
export const searchHistory = async (
  sessions: Pick<Sessions, "messages">,
  sessionID: string,
  isOver: () => boolean,
  from?: string,
): Promise<HistorySearch> => {
  let cursor = from
  let limit = PAGE_MESSAGES
  let firstText: string | undefined
  for (;;) {
    const page = await sessions.messages(sessionID, limit, cursor)
    if (page.kind === "failed") return page
    const { messages, older } = page.value
    const found = newestTask(messages)
    if (found) return { kind: "found", ...found }
    firstText = oldestUserText(messages) ?? firstText
    const complete = messages.length < limit
    const canWiden = older === undefined && cursor === undefined && limit === PAGE_MESSAGES
    const isAll = complete || (older === undefined && !canWiden)
    if (isAll || isOver()) {
      return {
        kind: "nothing",
        complete,
        isCutShort: !isAll,
        ...(isAll || older === undefined ? {} : { unread: older }),
        ...(firstText === undefined ? {} : { firstText }),
      }
    }
    if (older === undefined) limit = WIDER_PAGE_MESSAGES
    else cursor = older
  }
}
