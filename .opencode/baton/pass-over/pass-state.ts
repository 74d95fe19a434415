import { type PassOverError, passOverError } from "./errors.ts"

/** What became of each changed file of a result; together they are all of them, and none is in two. */
export type Decisions = {
  readonly undecided: readonly string[]
  readonly applied: readonly string[]
  readonly rejected: readonly string[]
}

export const PASS_STATES = [
  "sent",
  "waiting_for_return",
  "returned",
  "applied",
  "rejected",
  "cancelled",
  "timed_out",
] as const

/** The document's return states. `is_late`: the originator had stopped waiting when the result came. */
export type PassState =
  | { readonly state: "sent" }
  | { readonly state: "waiting_for_return" }
  | { readonly state: "timed_out" }
  | { readonly state: "cancelled" }
  | ({ readonly state: "returned" | "applied" | "rejected"; readonly is_late: boolean } & Decisions)

export type PassStateName = PassState["state"]

export type PassEvent =
  /** The subagent is at work; once more at each further attempt. */
  | { readonly type: "started" }
  /** There is a work output, whatever its status. @param paths of the files that the subagent changed */
  | { readonly type: "returned"; readonly paths: readonly string[] }
  /** The originator stops waiting. */
  | { readonly type: "timed_out" }
  | { readonly type: "cancelled" }
  /** Files of a result turn up that could not be stored when it came. */
  | { readonly type: "collected"; readonly paths: readonly string[] }
  /** @param paths which files; all that are undecided when left out. @param by whether the policy or an agent says so */
  | { readonly type: "applied"; readonly paths?: readonly string[] | undefined; readonly by: "policy" | "originator" }
  | { readonly type: "rejected"; readonly paths?: readonly string[] | undefined }

export type Step =
  | { readonly kind: "moved"; readonly state: PassState }
  | { readonly kind: "refused"; readonly error: PassOverError }

/** Where a pass begins. */
export const SENT: PassState = { state: "sent" }

/** Whether somebody may still be at work on it. */
export const isOpen = ({ state }: PassState): boolean => ["sent", "waiting_for_return", "timed_out"].includes(state)

const refuse = (state: PassState, event: PassEvent, cause: string): Step => ({
  kind: "refused",
  error: passOverError("E024", { message: `A pass that is ${state.state} cannot become ${event.type}`, cause }),
})

const move = (state: PassState): Step => ({ kind: "moved", state })

type Result = Extract<PassState, Decisions>

const decide = (result: Result, event: Extract<PassEvent, { type: "applied" | "rejected" }>): Step => {
  const chosen = new Set(event.paths ?? result.undecided)
  const unknown = [...chosen].find((path) => !result.undecided.includes(path))
  if (unknown !== undefined) {
    const known = result.undecided.length === 0 ? "none" : result.undecided.join(", ")
    return refuse(result, event, `${unknown} is not undecided; undecided: ${known}`)
  }
  const undecided = result.undecided.filter((path) => !chosen.has(path))
  const applied = [...result.applied, ...(event.type === "applied" ? chosen : [])]
  const rejected = [...result.rejected, ...(event.type === "rejected" ? chosen : [])]
  const isLast = undecided.length === 0
  // One applied file makes it an applied result; a result without files is what the last word says.
  const settled = applied.length > 0 || (rejected.length === 0 && event.type === "applied") ? "applied" : "rejected"
  return move({ state: isLast ? settled : "returned", is_late: result.is_late, undecided, applied, rejected })
}

const collect = (result: Result, event: Extract<PassEvent, { type: "collected" }>): Step => {
  if ([result.undecided, result.applied, result.rejected].some(({ length }) => length > 0))
    return refuse(result, event, "It has its files already")
  return move({ ...result, undecided: [...new Set(event.paths)] })
}

/** What an event makes of a pass; refused (E024) when it can make nothing of it. Pure. */
export const nextState = (state: PassState, event: PassEvent): Step => {
  switch (state.state) {
    case "sent":
    case "waiting_for_return":
    case "timed_out":
      break
    case "returned":
      if (event.type === "collected") return collect(state, event)
      if (event.type !== "applied" && event.type !== "rejected")
        return refuse(state, event, "It has its result already")
      if (event.type === "applied" && event.by === "policy" && state.is_late)
        return refuse(state, event, "A late result is applied by the originator alone")
      return decide(state, event)
    case "applied":
    case "rejected":
    case "cancelled":
      return refuse(state, event, "Nothing can happen to it any more")
  }
  const isLate = state.state === "timed_out"
  switch (event.type) {
    case "started":
      // A further attempt of one whose originator has gone on.
      return move(isLate ? state : { state: "waiting_for_return" })
    case "returned":
      return move({
        state: "returned",
        is_late: isLate,
        undecided: [...new Set(event.paths)],
        applied: [],
        rejected: [],
      })
    case "timed_out":
      return isLate ? refuse(state, event, "It is already") : move({ state: "timed_out" })
    case "cancelled":
      return move({ state: "cancelled" })
    case "collected":
    case "applied":
    case "rejected":
      return refuse(state, event, "There is no result yet")
  }
}
