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
  readonly limits: Limits
  /** Time after which an attempt is ended, and tried again (E010); undefined when the child may go on after its originator. */
  readonly attemptMs: number | undefined
  /** Stops the child and everything below it. */
  readonly stopping: AbortController
  /** Resolves when the child has returned and no other tool of that step is running; the rest of its turn is not waited for. */
  readonly workDone: Deferred<void>
  /** Resolves with the stored record, once its end is noted everywhere; undefined when storing failed. Never rejects. */
  readonly finished: Deferred<PassRecord | undefined>
  /** Changed by `advance` alone. */
  state: ActiveState
}

/** The child's return as checked. */
export type Outcome =
  | { readonly kind: "accepted"; readonly value: ReturnArguments }
  | { readonly kind: "failed"; readonly error: PassOverError }

type Shared = {
  /** The session of the newest attempt. */
  readonly childSessionID: string | null
  /** Settles when the sandbox of the newest attempt is made, or cannot be made. Never rejects. */
  readonly ready: Sandbox["ready"]
  readonly setUpError: PassOverError | undefined
  readonly cancelReason: CancelReason | undefined
  /** Once it no longer waits, the result has to be announced. */
  readonly originator: "waiting" | "left" | "timed_out"
}

type Phase =
  /** An attempt has no session yet. */
  | { readonly kind: "starting" }
  | {
      readonly kind: "working"
      /** Invalid returns of this attempt. */
      readonly refusals: number
      /** Calls of the child's tools that began in its present step, without the return. */
      readonly callsOfStep: readonly string[]
    }
  /** No work is left; other tools of the step may be running. */
  | { readonly kind: "returned"; readonly outcome: Outcome }
  /** The result is collected, perhaps while the child's turn goes on: any further work would belong to no result. */
  | { readonly kind: "over"; readonly outcome: Outcome | undefined }

/** The work on a pass as this process knows it; what is decided on its result is the stored record's state. */
export type ActiveState = Shared & Phase

export type ActiveEvent =
  /** A further attempt gets fresh files. */
  | { readonly type: "renewed"; readonly ready: Sandbox["ready"] }
  | { readonly type: "set_up_failed"; readonly error: PassOverError }
  | { readonly type: "session_started"; readonly sessionID: string }
  | { readonly type: "call_began"; readonly callID: string }
  /** Every tool call of the step before has ended. */
  | { readonly type: "step_began" }
  | { readonly type: "return_refused" }
  | { readonly type: "returned"; readonly outcome: Outcome }
  | { readonly type: "cancelled"; readonly reason: CancelReason }
  | { readonly type: "originator_left" }
  | { readonly type: "originator_timed_out" }
  | { readonly type: "ended" }
  /** Nothing that it returns is kept. */
  | { readonly type: "lost"; readonly error: PassOverError }

export const startingState = (ready: Sandbox["ready"]): ActiveState => ({
  kind: "starting",
  childSessionID: null,
  ready,
  setUpError: undefined,
  cancelReason: undefined,
  originator: "waiting",
})

export const outcomeOf = (state: ActiveState): Outcome | undefined => ("outcome" in state ? state.outcome : undefined)

/** An event that has no meaning in a state leaves it as it is. Pure. */
export const nextActiveState = (state: ActiveState, event: ActiveEvent): ActiveState => {
  const { childSessionID, ready, setUpError, cancelReason, originator } = state
  const shared: Shared = { childSessionID, ready, setUpError, cancelReason, originator }
  const hasWork = state.kind === "starting" || state.kind === "working"
  switch (event.type) {
    case "renewed":
      return hasWork ? { ...shared, kind: "starting", ready: event.ready } : state
    case "set_up_failed":
      return { ...state, setUpError: event.error }
    case "session_started":
      return hasWork
        ? { ...shared, kind: "working", childSessionID: event.sessionID, refusals: 0, callsOfStep: [] }
        : state
    case "call_began":
      return state.kind === "working" ? { ...state, callsOfStep: [...state.callsOfStep, event.callID] } : state
    case "step_began":
      return state.kind === "working" ? { ...state, callsOfStep: [] } : state
    case "return_refused":
      return state.kind === "working" ? { ...state, refusals: state.refusals + 1 } : state
    case "returned":
      // A return that was under way when the child was stopped still counts.
      if (state.kind === "over") return { ...state, outcome: state.outcome ?? event.outcome }
      return hasWork ? { ...shared, kind: "returned", outcome: event.outcome } : state
    case "cancelled":
      return { ...state, cancelReason: cancelReason ?? event.reason }
    case "originator_left":
      return originator === "waiting" ? { ...state, originator: "left" } : state
    case "originator_timed_out":
      return { ...state, originator: "timed_out" }
    case "ended":
      return { ...shared, kind: "over", outcome: outcomeOf(state) }
    case "lost":
      return { ...shared, kind: "over", outcome: { kind: "failed", error: event.error } }
  }
}

export const advance = (pass: ActivePass, event: ActiveEvent): void => {
  pass.state = nextActiveState(pass.state, event)
}
