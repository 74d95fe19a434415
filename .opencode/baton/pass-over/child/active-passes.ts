import type { Deferred } from "../../host/async.ts"
import type { StoredMessage } from "../../host/sessions.ts"
import type { ReturnArguments } from "../contract.ts"
import type { PassOverError } from "../errors.ts"
import type { Prepared } from "../prepare.ts"
import type { StopReason } from "../result/work-output.ts"
import type { Place } from "../sandbox/paths.ts"
import type { LeftOut } from "../sandbox/snapshot.ts"
import type { Begun } from "../sandbox/types.ts"
import type { PassRecord } from "../store/record.ts"
import type { Limits } from "./permissions.ts"

/** A pass that this process runs. */
export type LivePass = {
  readonly id: string
  readonly prepared: Prepared
  readonly place: Place | undefined
  /** Files that are missing in the child's copy. */
  readonly leftOut: readonly LeftOut[]
  /** Settles when the child's copy is made, or cannot be made. Never rejects. */
  readonly made: Begun["made"]
  /** The error of making the copy. */
  setUpError: PassOverError | undefined
  readonly limits: Limits
  /** Stops the child and everything below it. */
  readonly stopping: AbortController
  stopReason: StopReason | undefined
  childSessionID: string | null
  /** Resolves when the child has returned and runs no tools; the rest of its turn is not waited for. */
  readonly rest: Deferred<void>
  /** The child's messages at that moment. */
  transcript: readonly StoredMessage[] | undefined
  returned: ReturnArguments | undefined
  returnError: PassOverError | undefined
  /** The originator still waits; once it no longer does, the result has to be announced. */
  isAwaited: boolean
  /** Resolves with the stored record; undefined when storing failed. Never rejects. */
  finished: Promise<PassRecord | undefined>
}

export const stopPass = (pass: LivePass, reason: StopReason): void => {
  pass.stopReason ??= reason
  pass.stopping.abort()
}

/** The limits and state of a session that works on a pass; they also hold for every session below it. */
export type PassSession = {
  readonly passID: string
  readonly limits: Limits
  /** Place of its tools; undefined for OpenCode's own directory. */
  readonly place: Place | undefined
  /** It has returned, so no work is left. */
  hasReturned: boolean
  /** Its result is collected while its turn still runs: any further work would belong to no result. */
  isOver: boolean
  refusals: number
  /** Ids of its own tool calls that began in the present step, without the return. */
  readonly begun: Set<string>
  /** The sessions from the root down to its originator. */
  readonly above: readonly string[]
  /** Resolves when its originator has the result and has asked its model again. */
  readonly originatorWentOn: Deferred<void>
  /** Ends its turn and everything below it. */
  readonly stop: () => void
}

/** The sessions of this process that work on a pass. */
export type PassSessions = ReturnType<typeof createPassSessions>

export const createPassSessions = () => {
  const parents = new Map<string, string>()
  const working = new Map<string, PassSession>()
  return {
    created: (sessionID: string, parentID: string | undefined): void => {
      if (parentID !== undefined) parents.set(sessionID, parentID)
    },
    begin: (sessionID: string, pass: PassSession): void => {
      working.set(sessionID, pass)
    },
    /** The result is collected; the session's limits hold until its turn has ended. */
    close: (sessionID: string): void => {
      const pass = working.get(sessionID)
      if (pass) pass.isOver = true
    },
    /** The session's turn has ended. */
    end: (sessionID: string): void => {
      working.delete(sessionID)
    },
    /** The pass that a session itself works on. */
    own: (sessionID: string): PassSession | undefined => working.get(sessionID),
    /** The pass that a session, or the nearest one above it, works on. */
    find: (sessionID: string): PassSession | undefined => {
      const seen = new Set<string>()
      for (let at: string | undefined = sessionID; at !== undefined && !seen.has(at); at = parents.get(at)) {
        const pass = working.get(at)
        if (pass) return pass
        seen.add(at)
      }
      return undefined
    },
    /** Sessions whose result is collected while their turn still runs. */
    closing: (): PassSession[] => [...working.values()].filter(({ isOver }) => isOver),
    deleted: (sessionID: string): void => {
      parents.delete(sessionID)
      working.delete(sessionID)
    },
  }
}
