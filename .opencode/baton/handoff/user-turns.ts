import { createLruMap } from "../host/async.ts"

type Turn = {
  /** The text the user typed after /handoff; empty for none. */
  readonly goal: string
  /** The command's message has not arrived yet: OpenCode reports the command before the message it creates. */
  readonly isComing: boolean
  readonly handoff?: Promise<string>
}

const NO_TURN: Turn = { goal: "", isComing: false }

/** State of a session's newest user message; it is dropped at the next message. */
export const createUserTurns = () => {
  const turns = createLruMap<Turn>()
  return {
    onCommand: (sessionID: string, goal: string): void => turns.set(sessionID, { goal, isComing: true }),
    onMessage: (sessionID: string): void => {
      const turn = turns.get(sessionID)
      if (turn?.isComing) turns.set(sessionID, { ...turn, isComing: false })
      else turns.delete(sessionID)
    },
    goalOf: (sessionID: string): string => turns.get(sessionID)?.goal ?? "",
    /** Makes one handoff per turn, however often the model calls; after a failed one it may try again. */
    oncePerTurn: async (sessionID: string, handOver: () => Promise<string>): Promise<string> => {
      const turn = turns.get(sessionID) ?? NO_TURN
      if (turn.handoff) return `Already handed over in this turn; nothing was done again.\n\n${await turn.handoff}`
      const handoff = handOver()
      turns.set(sessionID, { ...turn, handoff })
      try {
        return await handoff
      } catch (error) {
        turns.set(sessionID, turn)
        throw error
      }
    },
    forget: (sessionID: string): void => void turns.delete(sessionID),
  }
}

export type UserTurns = ReturnType<typeof createUserTurns>
