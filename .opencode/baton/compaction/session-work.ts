/** What is under way for each session, so that a deleted one is forgotten after the last of it and not before. */
export type SessionWork = {
  /** @returns `work` itself */
  begin<T>(sessionID: string, work: Promise<T>): Promise<T>
  /** Resolves when nothing is under way for the session; what failed is over as well. */
  over(sessionID: string): Promise<void>
}

export const createSessionWork = (): SessionWork => {
  const underWay = new Map<string, Promise<void>>()
  return {
    begin: (sessionID, work) => {
      const all = Promise.allSettled([underWay.get(sessionID), work]).then(() => {
        if (underWay.get(sessionID) === all) underWay.delete(sessionID)
      })
      underWay.set(sessionID, all)
      return work
    },
    over: async (sessionID) => {
      // More may begin while the rest ends.
      for (let all = underWay.get(sessionID); all; all = underWay.get(sessionID)) await all
    },
  }
}
