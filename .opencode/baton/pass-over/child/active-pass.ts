import type { Deferred } from "../../host/async.ts"
import type { AgentInfo } from "../../host/child-sessions.ts"
import type { PermissionRule } from "../../host/permissions.ts"
import type { AgentAndModel } from "../../host/sessions.ts"
import type { ReturnArguments } from "../contract.ts"
import type { PassOverError } from "../errors.ts"
import type { Boundary } from "../sandbox/boundary.ts"
import type { SandboxPaths } from "../sandbox/paths.ts"
import type { Sandbox } from "../sandbox/sandbox.ts"
import type { BeginPass } from "../store/passes.ts"
import type { PassRecord } from "../store/record.ts"
import type { Limits } from "./permissions.ts"

export type Prepared = BeginPass & {
  readonly subagent: AgentInfo
  /** Rules of the calling agent, then of its session. */
  readonly originatorRules: readonly PermissionRule[]
  readonly model: AgentAndModel["model"] | undefined
  /** The pass that the originator itself works on. */
  readonly parentPass: string | undefined
  /** For the originator: what of its override was reduced. */
  readonly note: string | undefined
}

/** The reason why this program stopped the child. */
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
