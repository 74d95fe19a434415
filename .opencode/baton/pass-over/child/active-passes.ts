import type { Deferred } from "../../host/async.ts"
import type { StoredMessage } from "../../host/sessions.ts"
import type { ReturnArguments } from "../contract.ts"
import type { PassOverError } from "../errors.ts"
import type { Prepared } from "../prepare.ts"
import type { StopReason } from "../result/work-output.ts"
import type { PassRecord } from "../store/record.ts"
import type { Place } from "../worktree/redirect.ts"
import type { Begun, LeftOut } from "../worktree/worktree.ts"
import type { Limits } from "./permissions.ts"

/** A pass that this process works on. */
export type LivePass = {
  readonly id: string
  readonly prepared: Prepared
  readonly place: Place | undefined
  /** What the child's copy does not have. */
  readonly leftOut: readonly LeftOut[]
  /** Ends when the child's copy is there, or cannot be made. Never rejects. */
  readonly made: Begun["made"]
  /** Why there is no copy to work in. */
  setUpError: PassOverError | undefined
  readonly limits: Limits
  /** Ends the child and everything below it. */
  readonly stopping: AbortController
  stopReason: StopReason | undefined
  childSessionID: string | null
  /** Ends when the child has returned and does nothing any more; its turn goes on with words that nobody waits for. */
  readonly rest: Deferred<void>
  /** What the child had said and done by then. */
  transcript: readonly StoredMessage[] | undefined
  returned: ReturnArguments | undefined
  returnError: PassOverError | undefined
  /** Whether the originator still waits; once it has gone on it has to be told. */
  isAwaited: boolean
  /** Ends with what is stored; undefined when it could not be. Never rejects. */
  finished: Promise<PassRecord | undefined>
}

export const stopPass = (pass: LivePass, reason: StopReason): void => {
  pass.stopReason ??= reason
  pass.stopping.abort()
}

/** What holds for the session that works on a pass, and for every session below it. */
export type PassSession = {
  readonly passID: string
  readonly limits: Limits
  /** Where its tools work; undefined for OpenCode's own directory. */
  readonly place: Place | undefined
  /** Whether it has returned, so that nothing is left to do. */
  hasReturned: boolean
  /** Whether its result is taken while its turn still goes on: nothing that it does now would belong to anything. */
  isOver: boolean
  /** Refused returns so far. */
  refusals: number
  /** Calls of its own tools, by their ids, that began in the step it is at; its return is none of them. */
  readonly begun: Set<string>
  /** The sessions from the root down to its originator. */
  readonly above: readonly string[]
  /** Its originator has its result and has asked its model again. */
  readonly originatorWentOn: Deferred<void>
  /** Ends its turn and everything below it. */
  readonly stop: () => void
}

/** Which sessions of this process work on a pass. */
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
    /** The result is taken. What holds for the session goes on to hold until its turn has ended. */
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
    /** Those whose result is taken while their turn still goes on. */
    closing: (): PassSession[] => [...working.values()].filter(({ isOver }) => isOver),
    deleted: (sessionID: string): void => {
      parents.delete(sessionID)
      working.delete(sessionID)
    },
  }
}
