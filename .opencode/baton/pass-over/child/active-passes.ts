import { createLruMap, type Deferred } from "../../host/async.ts"
import type { ReturnArguments } from "../contract.ts"
import type { PassOverError } from "../errors.ts"
import type { Boundary } from "../sandbox/boundary.ts"
import type { SandboxPaths } from "../sandbox/paths.ts"
import type { Sandbox } from "../sandbox/sandbox.ts"
import type { PassRecord } from "../store/record.ts"
import type { Limits } from "./permissions.ts"
import type { Prepared } from "./prepared.ts"

export type CancelReason = "max_time" | "cancelled"

/** A pass that this process runs. Its limits and sandbox hold for the child's session and for every session below it. */
export type ActivePass = {
  readonly id: string
  readonly prepared: Prepared
  /** Undefined where the child's tools work in OpenCode's own directory. */
  readonly sandbox: SandboxPaths | undefined
  /** Of its shell commands; undefined where the policy wants none. */
  readonly boundary: Boundary | undefined
  /** Files that are missing in the sandbox. */
  readonly skipped: Sandbox["skipped"]
  /** Settles when the sandbox of the newest attempt is made, or cannot be made. Never rejects. */
  ready: Sandbox["ready"]
  readonly limits: Limits
  /** Time after which an attempt is ended, and tried again (E010); undefined when the child may go on after its originator. */
  readonly attemptMs: number | undefined
  /** Stops the child and everything below it. */
  readonly stopping: AbortController
  setUpError: PassOverError | undefined
  cancelReason: CancelReason | undefined
  /** Tells OpenCode's exit from an abort by the user, once the originator was aborted. */
  isExit: Promise<boolean> | undefined
  /** The session of the newest attempt. */
  childSessionID: string | null
  returned: ReturnArguments | undefined
  returnError: PassOverError | undefined
  /** Invalid returns of the newest attempt. */
  refusals: number
  /** Calls of the child's tools that began in its present step, without the return. */
  readonly callsOfStep: Set<string>
  /** Resolves when the child has returned and no other tool of that step is running; the rest of its turn is not waited for. */
  readonly workDone: Deferred<void>
  /** The result is collected, perhaps while the child's turn goes on: any further work would belong to no result. */
  isOver: boolean
  /** The originator still waits; once it no longer does, the result has to be announced. */
  isAwaited: boolean
  hasTimedOut: boolean
  /** Resolves with the stored record; undefined when storing failed. Never rejects. */
  finished: Promise<PassRecord | undefined>
}

/** The child has returned, so no work is left. */
export const hasReturned = ({ returned, returnError }: Pick<ActivePass, "returned" | "returnError">): boolean =>
  returned !== undefined || returnError !== undefined

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
