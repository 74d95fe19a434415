import type { Deferred } from "../host/async.ts"
import type { StoredMessage } from "../host/sessions.ts"
import type { Limits } from "./child-permission.ts"
import type { ReturnArguments } from "./contract.ts"
import type { PassOverError } from "./errors.ts"
import type { PassRecord } from "./pass-record.ts"
import type { Prepared } from "./prepare-pass.ts"
import type { StopReason } from "./work-output.ts"
import type { Place } from "./worktree/redirect.ts"
import type { Begun, LeftOut } from "./worktree/worktree.ts"

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
