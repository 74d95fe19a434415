import type { WorkOutput } from "./contract.ts"

export type PassOverError = NonNullable<WorkOutput["error"]>

type ErrorKind = {
  readonly name: string
  /** True when the same pass may succeed at another try. */
  readonly recoverable: boolean
  readonly meaning: string
  /** Default for errors that give no better step. */
  readonly next_step: string
}

/** Numbers are the design document's; additions are marked. docs/pass-over-reference.md shows this table. */
export const ERRORS = {
  E001: {
    name: "INVALID_SUBAGENT",
    recoverable: false,
    meaning: "There is no such subagent, or it receives no passes",
    next_step: "Choose one of the named subagents, or do the work yourself.",
  },
  E002: {
    name: "CHAIN_DEPTH_EXCEEDED",
    recoverable: false,
    meaning: "One more delegation would be too many",
    next_step: "Do this part yourself and return; the user may raise max_chain_depth in .opencode/pass-over.json.",
  },
  E003: {
    name: "CYCLE_DETECTED",
    recoverable: false,
    meaning: "The subagent is at work in this chain already",
    next_step: "Return what you have with pass_over_return; the agent that waits for it goes on from there.",
  },
  /** An addition: a limit on the number of passes is not a chain error. */
  E004: {
    name: "PASS_LIMIT_REACHED",
    recoverable: false,
    meaning: "The session has used up its passes",
    next_step: "Finish without passes; the user may raise max_passes_per_session in .opencode/pass-over.json.",
  },
  E010: {
    name: "SUBAGENT_TIMEOUT",
    recoverable: true,
    meaning: "The subagent took longer than the originator waits",
    next_step: "Go on without it; ask pass_over_status for a late result, or pass a smaller piece of work.",
  },
  E011: {
    name: "SUBAGENT_CRASHED",
    recoverable: true,
    meaning: "The subagent ended without a result",
    next_step: "Read the child session to see how far it got; pass again, or do the work yourself.",
  },
  E020: {
    name: "RETURN_CONTEXT_LOST",
    recoverable: false,
    meaning: "It cannot be told to whom the result goes back",
    next_step: "Do the work yourself; tell the user that the sessions could not be read.",
  },
  E021: {
    name: "INVALID_WORK_OUTPUT",
    recoverable: false,
    meaning: "What the subagent returned is not a work output",
    next_step: "Read the child session for what it found.",
  },
  /** Additions: the three errors of applying or rejecting a result. */
  E022: {
    name: "APPLY_CONFLICT",
    recoverable: false,
    meaning: "A file changed since the pass began",
    next_step: "Look at the named files; apply the others by name, or reject.",
  },
  E023: {
    name: "UNKNOWN_PASS",
    recoverable: false,
    meaning: "There is no such pass",
    next_step: "Call pass_over_status without an id to see the passes of this session.",
  },
  E024: {
    name: "WRONG_STATE",
    recoverable: false,
    meaning: "The pass is not in a state in which this can be done",
    next_step: "Call pass_over_status to see what became of it.",
  },
  E030: {
    name: "CONFIG_INVALID",
    recoverable: false,
    meaning: "The policy does not hold together, so that nothing is passed",
    next_step: "Tell the user what to mend in .opencode/pass-over.json; go on without passes until then.",
  },
} as const satisfies Record<string, ErrorKind>

export type ErrorCode = keyof typeof ERRORS

type ErrorDetails = {
  /** One sentence. */
  readonly message: string
  /** The value received or found. */
  readonly cause: string
  /** Replaces the table's next step. */
  readonly nextStep?: string | undefined
}

export const passOverError = (code: ErrorCode, { message, cause, nextStep }: ErrorDetails): PassOverError => {
  const { name, recoverable, next_step } = ERRORS[code]
  return { code, name, recoverable, message, cause, next_step: nextStep ?? next_step }
}

/** Renders an error in three lines: the error, its cause, the next step. */
export const renderError = ({ code, name, message, cause, next_step }: PassOverError): string =>
  [`${code} ${name}: ${message}`, ...(cause === "" ? [] : [`Cause: ${cause}`]), `Next: ${next_step}`].join("\n")

export const unknownPass = (passID: string, cause: string): PassOverError =>
  passOverError("E023", { message: `There is no pass ${JSON.stringify(passID)}`, cause })
