import { createLruMap } from "../../host/async.ts"
import type { ActivePass, CancelReason } from "./active-pass.ts"

/** Far more than work below passes at a time; a session that uses a tool is not dropped. */
const MAX_SESSIONS = 10_000

export type ActivePasses = ReturnType<typeof createActivePasses>

/** The passes of this process, and the sessions that work on them. */
export const createActivePasses = () => {
  const parents = createLruMap<string>({ limit: MAX_SESSIONS })
  const running = new Set<ActivePass>()
  const bySession = new Map<string, ActivePass>()
  let isEnding = false

  const stopAtExit = (pass: ActivePass): void => {
    pass.isAwaited = false
    // The originator is a subagent, which does not go on and could be told nothing.
    if (pass.prepared.request.metadata.chain_depth > 1) pass.cancelReason ??= "cancelled"
    pass.stopping.abort()
  }

  const covering = (sessionID: string): ActivePass | undefined => {
    const seen = new Set<string>()
    for (let at: string | undefined = sessionID; at !== undefined && !seen.has(at); at = parents.get(at)) {
      const pass = bySession.get(at)
      if (pass) return pass
      seen.add(at)
    }
    return undefined
  }

  return {
    /** A pass begins; it stays until its end is noted everywhere. */
    add: (pass: ActivePass): void => {
      running.add(pass)
      // It was still being set up.
      if (isEnding) stopAtExit(pass)
    },
    remove: (pass: ActivePass): void => void running.delete(pass),
    running: (): ActivePass[] => [...running],
    /** At OpenCode's exit nothing is cancelled: the work so far is the result. */
    cancel: (pass: ActivePass, reason: CancelReason): void => {
      if (!isEnding) pass.cancelReason ??= reason
      pass.stopping.abort()
    },
    isEnding: (): boolean => isEnding,
    /** OpenCode ends. Resolves when the results are stored. */
    end: async (): Promise<void> => {
      isEnding = true
      for (const pass of running) stopAtExit(pass)
      await Promise.all([...running].map(({ finished }) => finished))
    },
    sessionCreated: (sessionID: string, parentID: string | undefined): void => {
      if (parentID !== undefined) parents.set(sessionID, parentID)
    },
    /** A session begins to work on a pass. */
    turnStarted: (sessionID: string, pass: ActivePass): void => void bySession.set(sessionID, pass),
    /** A child of an earlier attempt that has not ended when it was told to may use no tool any more. */
    attemptEnded: (pass: ActivePass): void => {
      for (const [sessionID, each] of bySession) if (each === pass) bySession.set(sessionID, { ...pass, isOver: true })
    },
    turnEnded: (sessionID: string): void => void bySession.delete(sessionID),
    /** Deleting a session does not end its turn: until that ends it may use tools. */
    sessionDeleted: (sessionID: string): void => {
      if (!covering(sessionID)) parents.delete(sessionID)
    },
    /** The pass that a session itself works on. */
    of: (sessionID: string): ActivePass | undefined => bySession.get(sessionID),
    /** The pass that a session, or the nearest one above it, works on. */
    covering,
    /** Passes made in a session or below it, also those whose child speaks on after its result was collected. */
    below: (sessionID: string): ActivePass[] =>
      [...new Set([...running, ...bySession.values()])].filter(({ prepared }) =>
        prepared.request.metadata.origination_chain.some((link) => link.session_id === sessionID),
      ),
  }
}
