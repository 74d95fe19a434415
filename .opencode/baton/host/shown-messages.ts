import type { SessionInfo, Sessions } from "./sessions.ts"

/** Ids of messages grow with time. */
const isHidden = (revert: SessionInfo["revert"], messageID: string): boolean =>
  revert ? messageID > revert.messageID || (messageID === revert.messageID && revert.partID === undefined) : false

/**
 * Finds which of these messages OpenCode still shows: a revert hides a message and all later ones, and deletes them at the next
 * message. Of a session that is gone all count as shown, since deleting a session takes nothing back. A message that
 * `chat.message` is being called for is not stored yet, and counts as not shown.
 *
 * @returns undefined when OpenCode does not answer
 */
export type ShownMessages = (
  sessionID: string,
  messageIDs: readonly string[],
) => Promise<ReadonlySet<string> | undefined>

export const createShownMessages =
  (sessions: Pick<Sessions, "info" | "message">): ShownMessages =>
  async (sessionID, messageIDs) => {
    const session = await sessions.info(sessionID)
    if (session.kind === "failed") return session.missing ? new Set(messageIDs) : undefined
    const { revert } = session.value
    const shown = messageIDs.filter((id) => !isHidden(revert, id)).toSorted()
    // Those before one that exists do, too.
    for (let newest = shown.at(-1); newest !== undefined; newest = shown.at(-1)) {
      const answer = await sessions.message(sessionID, newest)
      if (answer.kind === "ok") break
      if (!answer.missing) return undefined
      shown.pop()
    }
    return new Set(shown)
  }
