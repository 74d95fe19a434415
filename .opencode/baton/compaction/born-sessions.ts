import type { Message, Part } from "@opencode-ai/sdk"

/** In every task line and in much else: a cheap look that never misses one (docs/adr/0003). */
const TASK_MARK = "Task:"
/** A session that falls out is looked up like any other. */
const MAX_SESSIONS = 1_000

/** What works on no task surely has nothing to do with the feature; what has one has nothing yet to be remembered but it. */
export type BornSession = "taskless" | "with a task"

type Born = {
  is: BornSession
  /** The ids of the user messages that passed by; "all" once its first request showed that there are no others. */
  heard: ReadonlySet<string> | "all"
  contextTokens?: number
}

/** What passed by of a session with a task before the feature was loaded. */
export type PassedBy = { sessionID: string; isTurnSeen: boolean; contextTokens?: number }

/**
 * The sessions that were born in this process and whose user messages were all heard, so that nothing about them has to be
 * looked up: they work on no task, as most of a person's sessions and their children do, or on one that a message has just
 * named.
 */
export const createBornSessions = () => {
  const sessions = new Map<string, Born>()
  const keep = (sessionID: string, born: Born): void => {
    sessions.set(sessionID, born)
    const oldest = sessions.size > MAX_SESSIONS ? sessions.keys().next().value : undefined
    if (oldest !== undefined) sessions.delete(oldest)
  }
  return {
    born: (sessionID: string, parentID: string | undefined): void => {
      if (parentID === undefined || sessions.get(parentID)?.is === "taskless")
        keep(sessionID, { is: "taskless", heard: new Set() })
    },
    /** A user's message arrived. @returns what the session is with it; undefined for any other session */
    noteMessage: (sessionID: string, { id }: Pick<Message, "id">, parts: readonly Part[]): BornSession | undefined => {
      const born = sessions.get(sessionID)
      if (!born) return undefined
      if (parts.some((part) => part.type === "text" && part.text.includes(TASK_MARK))) born.is = "with a task"
      if (born.heard !== "all") born.heard = new Set([...born.heard, id])
      return born.is
    },
    noteContext: (sessionID: string, contextTokens: number): void => {
      const born = sessions.get(sessionID)
      if (born) born.contextTokens = contextTokens
    },
    /** As far as is known: a fork counts until its first request. */
    find: (sessionID: string): BornSession | undefined => sessions.get(sessionID)?.is,
    /** For certain, since its first request was seen. */
    isSurelyTaskless: (sessionID: string): boolean => {
      const born = sessions.get(sessionID)
      return born?.is === "taskless" && born.heard === "all"
    },
    /** A fork begins with messages that nobody heard here. @returns what the session is; undefined for a fork */
    checkFirstRequest: (
      sessionID: string,
      messages: readonly { readonly info: Message }[],
    ): BornSession | undefined => {
      const born = sessions.get(sessionID)
      if (!born) return undefined
      const { heard } = born
      if (heard !== "all" && messages.some(({ info }) => info.role === "user" && !heard.has(info.id))) {
        sessions.delete(sessionID)
        return undefined
      }
      born.heard = "all"
      return born.is
    },
    /** The sessions with a task, for the feature; they are like any other to it from then on. */
    handOver: (): PassedBy[] => {
      const withTask = [...sessions].filter(([, { is }]) => is === "with a task")
      return withTask.map(([sessionID, { heard, contextTokens }]) => {
        sessions.delete(sessionID)
        return { sessionID, isTurnSeen: heard === "all", ...(contextTokens === undefined ? {} : { contextTokens }) }
      })
    },
    /** @returns what it was */
    forget: (sessionID: string): BornSession | undefined => {
      const is = sessions.get(sessionID)?.is
      sessions.delete(sessionID)
      return is
    },
  }
}
