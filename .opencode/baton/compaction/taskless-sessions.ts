import type { Message, Part } from "@opencode-ai/sdk"

/** In every task line and in much else: a cheap look that never misses one (docs/adr/0003). */
const TASK_MARK = "Task:"
/** A session that falls out is looked up like any other. */
const MAX_SESSIONS = 1_000

/** The ids of the user messages that passed by; "all" once its first request showed that there are no others. */
type Heard = ReadonlySet<string> | "all"

/**
 * The sessions that surely work on no task: born in this process, all their user messages heard, none with a task line, and
 * their parents like them. Nothing has to be loaded or asked for those, which most of a person's sessions are.
 */
export const createTasklessSessions = () => {
  const sessions = new Map<string, Heard>()
  const keep = (sessionID: string, heard: Heard): void => {
    sessions.set(sessionID, heard)
    const oldest = sessions.size > MAX_SESSIONS ? sessions.keys().next().value : undefined
    if (oldest !== undefined) sessions.delete(oldest)
  }
  return {
    born: (sessionID: string, parentID: string | undefined): void => {
      if (parentID === undefined || sessions.has(parentID)) keep(sessionID, new Set())
    },
    /** A user's message arrived. @returns whether the session is still one of them */
    noteMessage: (sessionID: string, { id }: Pick<Message, "id">, parts: readonly Part[]): boolean => {
      const heard = sessions.get(sessionID)
      if (!heard) return false
      if (parts.some((part) => part.type === "text" && part.text.includes(TASK_MARK))) {
        sessions.delete(sessionID)
        return false
      }
      if (heard !== "all") sessions.set(sessionID, new Set([...heard, id]))
      return true
    },
    /** As far as is known: a fork counts until its first request. */
    has: (sessionID: string): boolean => sessions.has(sessionID),
    /** For certain, since its first request was seen. */
    isCertain: (sessionID: string): boolean => sessions.get(sessionID) === "all",
    /** A fork begins with messages that nobody heard here. @returns whether the session is still one of them */
    checkFirstRequest: (sessionID: string, messages: readonly { readonly info: Message }[]): boolean => {
      const heard = sessions.get(sessionID)
      if (!heard) return false
      if (heard === "all") return true
      if (messages.some(({ info }) => info.role === "user" && !heard.has(info.id))) {
        sessions.delete(sessionID)
        return false
      }
      sessions.set(sessionID, "all")
      return true
    },
    /** @returns whether it was one of them */
    forget: (sessionID: string): boolean => sessions.delete(sessionID),
  }
}
