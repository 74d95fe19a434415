import { createLruMap } from "../async.ts"
import { field, text } from "../schema.ts"
import { isOlder } from "../shown-messages.ts"

/** Knows which of a session's messages the user has undone. A plugin is shown those since the newest compaction alone. */
export type Presence = {
  /** A message was sent. It may wait in the inbox, where a plugin does not see it. */
  sent(sessionID: string, messageID: string): void
  /** @param raw an event of OpenCode 2 */
  observe(raw: unknown): void
  /** An undone message is gone with the next one that is sent. @param entries those that OpenCode shows */
  isGone(sessionID: string, messageID: string, entries: readonly unknown[]): boolean
}

/** Far more than ever wait. */
const MAX_WAITING = 50

const idOf = (entry: unknown): string => text(field(entry, "id")) ?? ""

export const createPresence = (): Presence => {
  const waiting = createLruMap<readonly string[]>()
  const waitingIn = (sessionID: string): readonly string[] => waiting.get(sessionID) ?? []
  return {
    sent: (sessionID, messageID) => waiting.set(sessionID, [...waitingIn(sessionID), messageID].slice(-MAX_WAITING)),
    observe: (raw) => {
      const sessionID = text(field(raw, "data", "sessionID")) ?? ""
      const type = field(raw, "type")
      if (type === "session.deleted") waiting.delete(sessionID)
      if (type !== "session.inbox.cancelled" || !waiting.has(sessionID)) return
      const cancelled = field(raw, "data", "inboxID")
      waiting.set(
        sessionID,
        waitingIn(sessionID).filter((id) => id !== cancelled),
      )
    },
    isGone: (sessionID, messageID, entries) => {
      const shown = new Set(entries.map(idOf))
      const left = waitingIn(sessionID).filter((id) => !shown.has(id))
      if (waiting.has(sessionID)) waiting.set(sessionID, left)
      if (shown.has(messageID) || left.includes(messageID)) return false
      const [oldest] = entries
      // With an older message its compaction would be gone, too.
      return field(oldest, "type") !== "compaction" || isOlder(idOf(oldest), messageID)
    },
  }
}
