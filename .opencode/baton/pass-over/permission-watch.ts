import type { ChildSessions } from "../host/child-sessions.ts"
import type { PassSignal } from "./pass-signal.ts"

type Question = Extract<PassSignal, { kind: "asked" }>

/** The questions that OpenCode has put to the user and nobody has answered. */
export const createPermissionWatch = (sessions: Pick<ChildSessions, "refuse">) => {
  const open = new Map<string, Question>()
  return {
    asked: (question: Question): void => {
      open.set(question.permissionID, question)
    },
    answered: (permissionID: string): void => {
      open.delete(permissionID)
    },
    /** The session is gone, and its questions with it. */
    forget: (sessionID: string): void => {
      for (const question of open.values()) if (question.sessionID === sessionID) open.delete(question.permissionID)
    },
    /** Answers no for a user who is not there. */
    refuse: async ({ sessionID, permissionID }: Question): Promise<void> => {
      open.delete(permissionID)
      await sessions.refuse(sessionID, permissionID)
    },
    /** Takes back the question about a pass. */
    withdraw: async (passID: string): Promise<void> => {
      for (const question of open.values()) {
        if (question.passID !== passID) continue
        open.delete(question.permissionID)
        await sessions.refuse(question.sessionID, question.permissionID)
      }
    },
  }
}
