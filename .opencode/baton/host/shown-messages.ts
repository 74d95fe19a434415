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
    const candidates = messageIDs.filter((id) => !isHidden(revert, id))
    // Of two, the older one may be gone: the newer one came after it was undone.
    const answers = await Promise.all(candidates.map((id) => sessions.message(sessionID, id)))
    if (answers.some((answer) => answer.kind === "failed" && !answer.missing)) return undefined
    return new Set(candidates.filter((_, at) => answers[at]?.kind === "ok"))
  }
