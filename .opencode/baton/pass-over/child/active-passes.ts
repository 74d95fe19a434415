import { createLruMap } from "../../host/async.ts"
import type { PassOverError } from "../errors.ts"
import { type ActivePass, advance, type CancelReason, nextActiveState } from "./active-pass.ts"

/** At its exit 1.2.15 aborts all tools a millisecond before it says so; 1.18.33 says so before. */
const EXIT_NOTICE_MS = 100

/** Far more than work below passes at a time; a session that uses a tool is not dropped. */
const MAX_SESSIONS = 10_000

export type ActivePasses = ReturnType<typeof createActivePasses>

/** The passes of this process, and the sessions that work on them. */
export const createActivePasses = () => {
  const parents = createLruMap<string>({ limit: MAX_SESSIONS })
  const running = new Set<ActivePass>()
  const bySession = new Map<string, ActivePass>()
  const judgements = new WeakMap<ActivePass, Promise<boolean>>()
  let isEnding = false

  /** At OpenCode's exit nothing is cancelled: the work so far is the result. */
  const cancel = (pass: ActivePass, reason: CancelReason): void => {
    if (!isEnding) advance(pass, { type: "cancelled", reason })
    pass.stopping.abort()
  }

  const judge = async (pass: ActivePass): Promise<boolean> => {
    if (!isEnding) await new Promise((resolve) => setTimeout(resolve, EXIT_NOTICE_MS))
    cancel(pass, "cancelled")
    return isEnding
  }

  const stopAtExit = (pass: ActivePass): void => {
    advance(pass, { type: "originator_left" })
    // The originator is a subagent, which does not go on and could be told nothing.
    if (pass.prepared.request.metadata.chain_depth > 1) advance(pass, { type: "cancelled", reason: "cancelled" })
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
    cancel,
    /** Tells OpenCode's exit from an abort by the user, once the originator was aborted; judged once. */
    isExit: (pass: ActivePass): Promise<boolean> => {
      const judged = judgements.get(pass) ?? judge(pass)
      judgements.set(pass, judged)
      return judged
    },
    /** Waits for a judgement that has begun. */
    judged: async (pass: ActivePass): Promise<void> => void (await judgements.get(pass)),
    isEnding: (): boolean => isEnding,
    /** OpenCode ends. Resolves when the results are stored. */
    end: async (): Promise<void> => {
      isEnding = true
      for (const pass of running) stopAtExit(pass)
      await Promise.all([...running].map(({ finished }) => finished.promise))
    },
    sessionCreated: (sessionID: string, parentID: string | undefined): void => {
      if (parentID !== undefined) parents.set(sessionID, parentID)
    },
    /** A session begins to work on a pass. */
    turnStarted: (sessionID: string, pass: ActivePass): void => void bySession.set(sessionID, pass),
    /** Another attempt is to follow: a child that has not ended when it was told to may use no tool any more, nor return. */
    attemptFailed: (pass: ActivePass, error: PassOverError): void => {
      const state = nextActiveState(pass.state, { type: "lost", error })
      for (const [sessionID, each] of bySession) if (each === pass) bySession.set(sessionID, { ...pass, state })
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
