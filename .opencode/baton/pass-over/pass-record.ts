import type { ZodType } from "zod"
import type { Zod } from "../host/schema.ts"
import { contractSchemas, type PassOverRequest, type WorkOutput } from "./contract.ts"
import { isOpen, PASS_STATES, type PassState, type PassStateName } from "./pass-state.ts"
import { policyPartSchema } from "./policy.ts"
import { POLICY_LEVELS, type ResolvedPolicy } from "./policy-resolution.ts"

/** A pass as it lies on disk, from the moment it is asked for. Times are ISO 8601, UTC. */
export type PassRecord = {
  readonly version: 1
  readonly request: PassOverRequest
  /** As it was when the pass began; a change of the file changes the next pass. */
  readonly policy: ResolvedPolicy
  readonly state: PassState
  readonly history: readonly { readonly at: string; readonly state: PassStateName }[]
  /** How often the subagent was started. */
  readonly attempts: number
  /** The session of the newest attempt. */
  readonly child_session_id: string | null
  readonly output: WorkOutput | null
  /** When the originator was told of an asynchronous or late result. */
  readonly announced_at: string | null
  /** When the user released the result, where the policy asks for that. */
  readonly released_at: string | null
  /** Of the question, when it may be answered from here again. */
  readonly cache_key: string | null
  /** Whether its changes go into the audit, as the policy said when it began. */
  readonly is_audited: boolean
}

/** Whether there is a result of which the originator has not heard: it came late, or was never waited for. */
export const isUntold = ({ request, state, announced_at: announcedAt }: PassRecord): boolean =>
  announcedAt === null && state.state === "returned" && request.return_required && (state.is_late || request.async)

/** Whether somebody still works on a pass, decides on its files, or has to be told of it. */
export const isUnfinished = (record: PassRecord): boolean => {
  const { state } = record
  return isOpen(state) || (state.state === "returned" && state.undecided.length > 0) || isUntold(record)
}

const stateSchema = (z: Zod) => {
  const paths = z.array(z.string())
  const result = { is_late: z.boolean(), undecided: paths, applied: paths, rejected: paths }
  return z.discriminatedUnion("state", [
    z.strictObject({ state: z.enum(["sent", "waiting_for_return", "timed_out", "cancelled"]) }),
    z.strictObject({ state: z.enum(["returned", "applied", "rejected"]), ...result }),
  ])
}

export const passRecordSchema = (z: Zod): ZodType<PassRecord> => {
  const { request, output } = contractSchemas(z)
  const values = policyPartSchema(z).required()
  const levels = z.record(values.keyof(), z.enum(POLICY_LEVELS))
  return z.strictObject({
    version: z.literal(1),
    request,
    policy: z.strictObject({ name: z.string(), values, levels }),
    state: stateSchema(z),
    history: z.array(z.strictObject({ at: z.string(), state: z.enum(PASS_STATES) })),
    attempts: z.number().int().min(0),
    child_session_id: z.string().nullable(),
    output: output.nullable(),
    announced_at: z.string().nullable(),
    released_at: z.string().nullable().default(null),
    cache_key: z.string().nullable(),
    is_audited: z.boolean(),
  })
}

const PASS_ID = /^pass_[0-9]{17}_[0-9a-z]{4,32}$/

/** An id that sorts by time. @param random lower-case letters and digits, 4 to 32 */
export const createPassID = (at: Date, random: string): string =>
  `pass_${at.toISOString().replaceAll(/[^0-9]/g, "")}_${random}`

/** Whether a text from outside may be taken for an id, and so for a folder's name. */
export const isPassID = (text: string): boolean => PASS_ID.test(text)
