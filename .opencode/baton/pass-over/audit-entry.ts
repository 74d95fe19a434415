import { cutText } from "../host/log.ts"
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
  "collected",
  "applied",
  "rejected",
  "announced",
  "released",
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
  return line.length > REASON_CHARACTERS ? `${cutText(line, REASON_CHARACTERS)}…` : line
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

/** What is known of a pass that was never made. */
export type RefusedPass = Pick<
  AuditEntry,
  | "pass_over_id"
  | "root_session_id"
  | "originating_session_id"
  | "originating_agent"
  | "subagent"
  | "reason"
  | "chain_depth"
>

/** The line for a pass that was never made. */
export const refusedEntry = (refused: RefusedPass, error: PassOverError, at: string): AuditEntry => ({
  version: 1,
  at,
  event: "refused",
  state: "refused",
  ...refused,
  reason: shorten(refused.reason),
  child_session_id: null,
  task_id: null,
  started_at: at,
  completed_at: null,
  policy_name: "none",
  attempts: 0,
  artifacts_count: 0,
  status: null,
  is_late: false,
  applied: false,
  error: shortError(error),
})

const TEXTS = [
  "at",
  "pass_over_id",
  "root_session_id",
  "originating_session_id",
  "originating_agent",
  "subagent",
  "reason",
  "started_at",
  "policy_name",
] as const satisfies readonly (keyof AuditEntry)[]
const TEXTS_OR_NULL = ["child_session_id", "task_id", "completed_at"] as const satisfies readonly (keyof AuditEntry)[]
const COUNTS = ["chain_depth", "attempts", "artifacts_count"] as const satisfies readonly (keyof AuditEntry)[]
const FLAGS = ["is_late", "applied"] as const satisfies readonly (keyof AuditEntry)[]

const KNOWN_EVENTS: ReadonlySet<unknown> = new Set(EVENTS)
const KNOWN_STATES: ReadonlySet<unknown> = new Set([...PASS_STATES, "refused"])
const KNOWN_STATUSES: ReadonlySet<unknown> = new Set([...WORK_STATUSES, null])

const isShortError = (error: unknown): boolean =>
  error === null ||
  (typeof error === "object" &&
    typeof Reflect.get(error, "code") === "string" &&
    typeof Reflect.get(error, "message") === "string")

/**
 * Whether a parsed line is an entry of this version. Not a schema: one costs 5 µs a line and 70 ms to load, which is more than
 * a query over 100,000 lines may take (docs/benchmarks.md).
 */
export const isAuditEntry = (value: unknown): value is AuditEntry => {
  if (typeof value !== "object" || value === null || Reflect.get(value, "version") !== 1) return false
  const entry = value as Record<string, unknown>
  return (
    TEXTS.every((key) => typeof entry[key] === "string") &&
    TEXTS_OR_NULL.every((key) => entry[key] === null || typeof entry[key] === "string") &&
    COUNTS.every((key) => Number.isInteger(entry[key])) &&
    FLAGS.every((key) => typeof entry[key] === "boolean") &&
    KNOWN_EVENTS.has(entry.event) &&
    KNOWN_STATES.has(entry.state) &&
    KNOWN_STATUSES.has(entry.status) &&
    isShortError(entry.error)
  )
}
