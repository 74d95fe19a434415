import type { ZodType } from "zod"
import type { Zod } from "../host/schema.ts"
import { type PassOverRequest, WORK_STATUSES, type WorkStatus } from "./contract.ts"
import type { PassOverError } from "./errors.ts"
import type { PassRecord } from "./pass-record.ts"
import { PASS_STATES, type PassStateName } from "./pass-state.ts"
import { redact } from "./redact.ts"

const EVENTS = [
  "sent",
  "refused",
  "started",
  "attempt_failed",
  "returned",
  "timed_out",
  "cancelled",
  "applied",
  "rejected",
  "announced",
] as const
export type AuditEvent = (typeof EVENTS)[number]

/** One line of the audit: the document's entry, and what it takes to read the line alone. Times are ISO 8601, UTC. */
export type AuditEntry = {
  readonly version: 1
  readonly at: string
  readonly event: AuditEvent
  /** What the pass is after it; `refused` for one that was never made. */
  readonly state: PassStateName | "refused"
  readonly pass_over_id: string
  readonly root_session_id: string
  readonly originating_session_id: string
  readonly originating_agent: string
  readonly subagent: string
  readonly child_session_id: string | null
  readonly task_id: string | null
  readonly reason: string
  readonly started_at: string
  readonly completed_at: string | null
  readonly chain_depth: number
  readonly policy_name: string
  readonly attempts: number
  readonly artifacts_count: number
  readonly status: WorkStatus | null
  readonly is_late: boolean
  /** Whether the result was used, in whole or in part. */
  readonly applied: boolean
  readonly error: { readonly code: string; readonly message: string } | null
}

const REASON_CHARACTERS = 500

/** One line's worth, without secrets. */
const shorten = (text: string): string => {
  const line = redact(text).replaceAll(/\s+/g, " ").trim()
  return line.length > REASON_CHARACTERS ? `${line.slice(0, REASON_CHARACTERS).replace(/[\uD800-\uDBFF]$/, "")}…` : line
}

const shortError = (error: PassOverError | null | undefined): AuditEntry["error"] =>
  error ? { code: error.code, message: shorten(error.message) } : null

const aboutRequest = (request: PassOverRequest) => ({
  pass_over_id: request.pass_over_id,
  root_session_id: request.metadata.root_session_id,
  originating_session_id: request.originating_session_id,
  originating_agent: request.originating_agent_id,
  subagent: request.subagent_id,
  task_id: request.work_context.task?.id ?? null,
  reason: shorten(request.reason),
  started_at: request.metadata.created_at,
  chain_depth: request.metadata.chain_depth,
  policy_name: request.metadata.policy_name,
})

export type Happening = { readonly at: string; readonly event: AuditEvent; readonly error?: PassOverError | undefined }

/** The line for what happened to a pass, taken from its record as it is afterwards. */
export const auditEntry = (record: PassRecord, { at, event, error }: Happening): AuditEntry => {
  const { request, state, output } = record
  return {
    version: 1,
    at,
    event,
    state: state.state,
    ...aboutRequest(request),
    child_session_id: record.child_session_id,
    completed_at: output?.metadata.completed_at ?? null,
    attempts: record.attempts,
    artifacts_count: output?.artifacts.length ?? 0,
    status: output?.status ?? null,
    is_late: "is_late" in state && state.is_late,
    applied: state.state === "applied" || ("applied" in state && state.applied.length > 0),
    error: shortError(error ?? output?.error),
  }
}

/** The line for a pass that was never made. */
export const refusedEntry = (request: PassOverRequest, error: PassOverError, at: string): AuditEntry => ({
  version: 1,
  at,
  event: "refused",
  state: "refused",
  ...aboutRequest(request),
  child_session_id: null,
  completed_at: null,
  attempts: 0,
  artifacts_count: 0,
  status: null,
  is_late: false,
  applied: false,
  error: shortError(error),
})

export const auditEntrySchema = (z: Zod): ZodType<AuditEntry> => {
  const text = z.string()
  const count = z.number().int().min(0)
  return z.object({
    version: z.literal(1),
    at: text,
    event: z.enum(EVENTS),
    state: z.enum([...PASS_STATES, "refused"]),
    pass_over_id: text,
    root_session_id: text,
    originating_session_id: text,
    originating_agent: text,
    subagent: text,
    child_session_id: text.nullable(),
    task_id: text.nullable(),
    reason: text,
    started_at: text,
    completed_at: text.nullable(),
    chain_depth: count,
    policy_name: text,
    attempts: count,
    artifacts_count: count,
    status: z.enum(WORK_STATUSES).nullable(),
    is_late: z.boolean(),
    applied: z.boolean(),
    error: z.object({ code: text, message: text }).nullable(),
  })
}
