import type { Message, Part } from "@opencode-ai/sdk"

/** In every task line and in much else: a cheap look that never misses one (docs/adr/0003). */
const TASK_MARK = "Task:"

type Heard = {
  /** How many of its user messages passed by here. */
  readonly messages: number
  /** Whether that was all of them, seen at its first request. */
  readonly isWhole: boolean
}

/**
 * The sessions that surely work on no task: born in this process, all their user messages heard, none with a task line, and
 * their parents like them. Nothing has to be loaded or asked for those, which most of a person's sessions are.
 */
export const createTasklessSessions = () => {
  const sessions = new Map<string, Heard>()
  return {
    born: (sessionID: string, parentID: string | undefined): void => {
      if (parentID === undefined || sessions.has(parentID)) sessions.set(sessionID, { messages: 0, isWhole: false })
    },
    /** A user's message arrived. @returns whether the session is still one of them */
    hears: (sessionID: string, parts: readonly Part[]): boolean => {
      const heard = sessions.get(sessionID)
      if (!heard) return false
      if (parts.some((part) => part.type === "text" && part.text.includes(TASK_MARK)))
        return !sessions.delete(sessionID)
      sessions.set(sessionID, { ...heard, messages: heard.messages + 1 })
      return true
    },
    has: (sessionID: string): boolean => sessions.has(sessionID),
    /** A fork begins with messages that nobody heard here. @returns whether the session is still one of them */
    sends: (sessionID: string, messages: readonly { readonly info: Message }[]): boolean => {
      const heard = sessions.get(sessionID)
      if (!heard) return false
      if (heard.isWhole) return true
      if (messages.filter(({ info }) => info.role === "user").length > heard.messages)
        return !sessions.delete(sessionID)
      sessions.set(sessionID, { ...heard, isWhole: true })
      return true
    },
    /** @returns whether it was one of them */
    forget: (sessionID: string): boolean => sessions.delete(sessionID),
  }
}
