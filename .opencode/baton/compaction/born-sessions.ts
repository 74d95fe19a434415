import type { Message, Part } from "@opencode-ai/sdk"

/** In every task line and in much else: a cheap look that never misses one (docs/adr/0003). */
const TASK_MARK = "Task:"
/** A session that falls out is looked up like any other. */
const MAX_SESSIONS = 1_000

/** The ids of the user messages that passed by; "all" once the first request showed that there are no others. */
type Heard = ReadonlySet<string> | "all"

/**
 * The sessions that began in this process and work on no task, as most of a person's sessions and their children do:
 * nothing about them has to be loaded or looked up.
 */
export const createBornSessions = () => {
  const sessions = new Map<string, Heard>()
  const keep = (sessionID: string): void => {
    sessions.set(sessionID, new Set())
    const oldest = sessions.size > MAX_SESSIONS ? sessions.keys().next().value : undefined
    if (oldest !== undefined) sessions.delete(oldest)
  }
  return {
    born: (sessionID: string, parentID: string | undefined): void => {
      if (parentID === undefined || sessions.has(parentID)) keep(sessionID)
    },
    /** A user's message arrived. @returns whether the session is still taskless */
    noteMessage: (sessionID: string, { id }: Pick<Message, "id">, parts: readonly Part[]): boolean => {
      const heard = sessions.get(sessionID)
      if (heard === undefined) return false
      if (parts.some((part) => part.type === "text" && part.text.includes(TASK_MARK))) {
        sessions.delete(sessionID)
        return false
      }
      if (heard !== "all") sessions.set(sessionID, new Set([...heard, id]))
      return true
    },
    /** As far as is known: a fork counts until its first request. */
    isTaskless: (sessionID: string): boolean => sessions.has(sessionID),
    /** For certain, since its first request was seen. */
    isSurelyTaskless: (sessionID: string): boolean => sessions.get(sessionID) === "all",
    /** A fork begins with messages that did not pass by here. @returns whether the session is still taskless */
    checkFirstRequest: (sessionID: string, messages: readonly { readonly info: Message }[]): boolean => {
      const heard = sessions.get(sessionID)
      if (heard === undefined) return false
      if (heard !== "all" && messages.some(({ info }) => info.role === "user" && !heard.has(info.id))) {
        sessions.delete(sessionID)
        return false
      }
      sessions.set(sessionID, "all")
      return true
    },
    /** @returns whether it was taskless */
    forget: (sessionID: string): boolean => sessions.delete(sessionID),
  }
}
