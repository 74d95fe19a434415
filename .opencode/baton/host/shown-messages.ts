import type { SessionInfo, Sessions } from "./sessions.ts"

/** The id of a copy in a fork of OpenCode 2: the fork's own, and a number without zeros in front. A summary's has a letter behind it. */
const COPY = /^(msg_[^_]+_)(\d+)z?$/

/** Compares ids of messages, which grow with time: as texts, and copies in one fork by their numbers. */
export const isOlder = (id: string, other: string): boolean => {
  const [, fork, count] = COPY.exec(id) ?? []
  const [, otherFork, otherCount] = COPY.exec(other) ?? []
  const areCopies = fork !== undefined && fork === otherFork && count !== otherCount
  return areCopies ? Number(count) < Number(otherCount) : id < other
}

const isHidden = (revert: SessionInfo["revert"], messageID: string): boolean =>
  revert
    ? isOlder(revert.messageID, messageID) || (messageID === revert.messageID && revert.partID === undefined)
    : false

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
    // Each is looked up: one from before an undo may be gone while a newer one, from after it, is there.
    const answers = await Promise.all(messageIDs.map((id) => sessions.message(sessionID, id)))
    // Asked last: a session that is deleted meanwhile is gone, and took nothing back.
    const session = await sessions.info(sessionID)
    if (session.kind === "failed") return session.missing ? new Set(messageIDs) : undefined
    if (answers.some((answer) => answer.kind === "failed" && !answer.missing)) return undefined
    const { revert } = session.value
    return new Set(messageIDs.filter((id, at) => answers[at]?.kind === "ok" && !isHidden(revert, id)))
  }
