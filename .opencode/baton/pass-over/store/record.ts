import type { infer as Infer, ZodType } from "zod"
import type { Zod } from "../../host/schema.ts"
import {
  type ArtifactOf,
  artifactsOf,
  contractSchemas,
  type Immutable,
  policyPartSchema,
  type WorkOutput,
} from "../contract.ts"
import { type PassOverError, passOverError } from "../errors.ts"
import { POLICY_LEVELS, type ResolvedPolicy } from "../policy/resolve.ts"

/**
 * A pass as stored on disk, from its request on. Times are ISO 8601, UTC. Fields that a newer version added are kept: after a
 * downgrade its passes can still be settled.
 */
export const passRecordSchema = (z: Zod) => {
  const object = z.looseObject as unknown as Zod["strictObject"]
  const { request, output } = contractSchemas(z, object)
  const paths = z.array(z.string())
  /** The design document's return states. */
  const state = z.discriminatedUnion("state", [
    object({ state: z.enum(["sent", "waiting_for_return", "timed_out", "cancelled"]) }),
    object({
      state: z.enum(["returned", "applied", "rejected"]),
      /** The originator had stopped waiting when the result came. */
      is_late: z.boolean(),
      /** Each changed file is in exactly one of these lists. */
      undecided: paths,
      applied: paths,
      rejected: paths,
    }),
  ])
  const levels = z.record(z.string(), z.enum(POLICY_LEVELS)) as unknown as ZodType<ResolvedPolicy["levels"]>
  return object({
    version: z.literal(1),
    request,
    /** As it was at the start: a change of the file affects only later passes. */
    policy: object({ name: z.string(), values: policyPartSchema(z, object).required(), levels }),
    state,
    history: z.array(object({ at: z.string(), state: z.enum(PASS_STATES) })),
    attempts: z.number().int().min(0),
    /** The session of the newest attempt. */
    child_session_id: z.string().nullable(),
    output: output.nullable(),
    /** Time when the originator was told of an asynchronous or late result. */
    announced_at: z.string().nullable(),
    /** Time when the user approved the result, if the policy asks for that. */
    released_at: z.string().nullable(),
    /** The one who approved it then; null before, and for a result that needs no approval. */
    released_by: z.enum(RELEASERS).nullable(),
    /** The subagent may change files. */
    can_change: z.boolean(),
    /** Key of the question, if its answer may be reused. */
    cache_key: z.string().nullable(),
    /** The policy's audit setting when the pass began. */
    is_audited: z.boolean(),
  })
}

/** The user, a rule of the user or the policy, no answer in time, `opencode run`, or an OpenCode that lets no tool ask. */
const RELEASERS = ["user", "policy", "silence", "run", "unsupported"] as const
export type Releaser = (typeof RELEASERS)[number]

export type PassRecord = Immutable<Infer<ReturnType<typeof passRecordSchema>>>
export type PassState = PassRecord["state"]
export type PassStateName = PassState["state"]

/**
 * The originator has yet to be told of a result: it came late, or was never waited for. Its files may be decided on
 * by then, by the policy or a person.
 */
export const needsAnnouncement = ({ request, state, announced_at: announcedAt }: PassRecord): boolean =>
  announcedAt === null && "is_late" in state && request.return_required && (state.is_late || request.async)

export const criticalFindings = ({ output }: Pick<PassRecord, "output">): ArtifactOf<"finding">[] =>
  artifactsOf(output, "finding").filter(({ severity }) => severity === "critical")

/**
 * Tells why the user is asked before a result goes back; undefined for one that goes back at once: what is not completed, so that
 * no failure is withheld, and what of an agent that can change nothing comes, unless `auto_return` is set to false.
 */
export const reasonToAsk = (record: PassRecord): string | undefined => {
  const { output, policy, released_at, can_change } = record
  if (released_at !== null || output?.status !== "completed" || output.error !== null) return undefined
  const { auto_return } = policy.values
  const isHeld = !auto_return && (can_change || policy.levels.auto_return !== "built-in")
  if (can_change && criticalFindings(record).length > 0) return "it has a critical finding"
  return isHeld ? "auto_return is false" : undefined
}

/** Open, with undecided files, or to be announced. */
export const isUnfinished = (record: PassRecord): boolean => {
  const { state } = record
  return isOpen(state) || (state.state === "returned" && state.undecided.length > 0) || needsAnnouncement(record)
}

/** The error of a stored result that is for another agent than the one that made the pass. */
export const findForeignResult = ({ output, request }: PassRecord): PassOverError | undefined =>
  output === null || output.return_to === request.originating_agent_id
    ? undefined
    : passOverError("E020", {
        message: `The result of ${request.pass_over_id} is for ${output.return_to}, not for ${request.originating_agent_id}`,
        cause: "return_to of the stored result names another agent than its request",
        nextStep: "Tell the user; read the child session for what was found.",
      })

/** Its output may be reused: it is complete and changes no files. */
export const isRepeatable = ({ status, artifacts, left_out }: WorkOutput): boolean =>
  status === "completed" && left_out.length === 0 && artifacts.every(({ type }) => type !== "file_modification")

const PASS_ID = /^pass_[0-9]{17}_[0-9a-z]{4,32}$/

/** Makes an id that sorts by time. @param random lower-case letters and digits, 4 to 32 */
export const createPassID = (at: Date, random: string): string =>
  `pass_${at.toISOString().replaceAll(/[^0-9]/g, "")}_${random}`

/** Checks an id from outside, since it becomes the name of a folder. */
export const isPassID = (text: string): boolean => PASS_ID.test(text)

const PASS_STATES = ["sent", "waiting_for_return", "returned", "applied", "rejected", "cancelled", "timed_out"] as const

export type PassEvent =
  /** The subagent works; once more for each further attempt. */
  | { readonly type: "started" }
  /** There is a work output of any status. @param paths of the files that the subagent changed */
  | { readonly type: "returned"; readonly paths: readonly string[] }
  /** The originator stops waiting. */
  | { readonly type: "timed_out" }
  | { readonly type: "cancelled" }
  /** There is a result, and OpenCode ends before the originator is told. */
  | { readonly type: "untold" }
  /** Files of a result are found that could not be stored when it came. */
  | { readonly type: "collected"; readonly paths: readonly string[] }
  /** @param paths the files; all undecided ones when absent. @param by the decider */
  | { readonly type: "applied"; readonly paths?: readonly string[] | undefined; readonly by: "policy" | "originator" }
  | { readonly type: "rejected"; readonly paths?: readonly string[] | undefined }

type Step =
  | { readonly kind: "moved"; readonly state: PassState }
  | { readonly kind: "refused"; readonly error: PassOverError }

export const SENT: PassState = { state: "sent" }

/** A subagent may still work on it. */
export const isOpen = ({ state }: PassState): boolean => ["sent", "waiting_for_return", "timed_out"].includes(state)

const refuse = (state: PassState, event: PassEvent, cause: string): Step => ({
  kind: "refused",
  error: passOverError("E024", { message: `A pass that is ${state.state} cannot become ${event.type}`, cause }),
})

const move = (state: PassState): Step => ({ kind: "moved", state })

type Result = Extract<PassState, { is_late: boolean }>

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
  // One applied file makes it an applied result; for a result without files the event decides.
  const settled = applied.length > 0 || (rejected.length === 0 && event.type === "applied") ? "applied" : "rejected"
  return move({ state: isLast ? settled : "returned", is_late: result.is_late, undecided, applied, rejected })
}

const collect = (result: Result, event: Extract<PassEvent, { type: "collected" }>): Step => {
  if ([result.undecided, result.applied, result.rejected].some(({ length }) => length > 0))
    return refuse(result, event, "It has its files already")
  return move({ ...result, undecided: [...new Set(event.paths)] })
}

/** Applies an event to a pass's state; refused (E024) when the state does not allow it. Pure. */
export const nextState = (state: PassState, event: PassEvent): Step => {
  if (event.type === "untold" && "is_late" in state) return move({ ...state, is_late: true })
  if (state.state === "returned") {
    if (event.type === "collected") return collect(state, event)
    if (event.type !== "applied" && event.type !== "rejected") return refuse(state, event, "It has its result already")
    if (event.type === "applied" && event.by === "policy" && state.is_late)
      return refuse(state, event, "A late result is applied by the originator alone")
    return decide(state, event)
  }
  if (!isOpen(state)) return refuse(state, event, "Nothing can happen to it any more")
  const isLate = state.state === "timed_out"
  switch (event.type) {
    case "started":
      // A further attempt of a pass whose originator has moved on.
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
    case "untold":
      return refuse(state, event, "There is no result yet")
  }
}
