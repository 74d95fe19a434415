type Turn = {
  /** What the user typed behind /handoff; empty for nothing. */
  readonly goal: string
  /** Its message has not arrived yet: OpenCode tells of the command before it tells of the message that comes of it. */
  readonly isComing: boolean
  readonly handoff?: Promise<string>
}

const NO_TURN: Turn = { goal: "", isComing: false }

/** What belongs to the newest user message of a session, and ends with the next one. */
export const createUserTurns = () => {
  const turns = new Map<string, Turn>()
  return {
    commandGiven: (sessionID: string, goal: string): void => void turns.set(sessionID, { goal, isComing: true }),
    messageArrived: (sessionID: string): void => {
      const turn = turns.get(sessionID)
      if (turn?.isComing) turns.set(sessionID, { ...turn, isComing: false })
      else turns.delete(sessionID)
    },
    goalOf: (sessionID: string): string => turns.get(sessionID)?.goal ?? "",
    /** A model that calls twice makes one handoff; after a failed one it may try again. */
    handOverOnce: async (sessionID: string, handOver: () => Promise<string>): Promise<string> => {
      const turn = turns.get(sessionID) ?? NO_TURN
      if (turn.handoff) return `This was handed over before, and not a second time.\n\n${await turn.handoff}`
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
