import type { Answer, Sessions, StoredMessage } from "./sessions.ts"

/** Older than the page before it; in itself oldest first. */
export type PageBack = { readonly messages: readonly StoredMessage[]; readonly isOldest: boolean }

/** How much more is asked for where there are no cursors. */
const WIDENING = 10

/**
 * A session's messages, page by page from the newest back. It ends after the oldest page, after a failure, and as soon as
 * `isOver` says so, which is asked before each page.
 *
 * OpenCode without cursors (1.2.15) can only be asked for more of the newest: each page is then ten times as large, and what
 * was given before is left out of it.
 */
export async function* pagesBack(
  sessions: Pick<Sessions, "messages">,
  sessionID: string,
  { size, isOver }: { size: number; isOver: () => boolean },
): AsyncGenerator<Answer<PageBack>, void> {
  let cursor: string | undefined
  let limit = size
  let oldestID: string | undefined
  while (!isOver()) {
    const answer = await sessions.messages(sessionID, limit, cursor)
    if (answer.kind === "failed") {
      yield answer
      return
    }
    const { messages, older } = answer.value
    const known = messages.findIndex(({ info }) => info.id === oldestID)
    const isOldest = older === undefined && (cursor !== undefined || messages.length < limit)
    yield { kind: "answer", value: { messages: known < 0 ? messages : messages.slice(0, known), isOldest } }
    if (isOldest) return
    oldestID = messages[0]?.info.id
    cursor = older
    if (older === undefined) limit *= WIDENING
  }
}
