import type { StoredMessage } from "../host/sessions.ts"
import type { ChildEnd } from "./child-run.ts"
import { collectToolResults, lastWords } from "./child-transcript.ts"
import type { PassOverRequest, ReturnArguments, WorkOutput } from "./contract.ts"
import { type PassOverError, passOverError } from "./errors.ts"
import { renderFinding } from "./render-result.ts"
import { projectText } from "./worktree/redirect.ts"
import type { Changes, Refusal } from "./worktree/worktree.ts"

/** How many of a child's newest messages its result is made of. */
export const CHILD_MESSAGES = 200

/** Why this program ended the child, where it did. */
export type StopReason = "timeout" | "max_time" | "cancelled"

export type Collected = {
  readonly request: PassOverRequest
  readonly childSessionID: string | null
  readonly attempts: number
  readonly end: ChildEnd
  readonly stopReason: StopReason | undefined
  /** What the child returned, in paths of the worktree. */
  readonly returned: ReturnArguments | undefined
  /** Of files that the child was to have. */
  readonly setUpError: PassOverError | undefined
  /** Of a return that was refused for good. */
  readonly returnError: PassOverError | undefined
  readonly messages: readonly StoredMessage[]
  /** What became of the files, or why that is unknown. */
  readonly changes: Changes | Refusal
  /** The copy whose paths in the child's words are made the worktree's. */
  readonly copy: string | undefined
  readonly completedAt: string
}

const timeoutError = (stopReason: StopReason): PassOverError =>
  passOverError("E010", {
    message: "The subagent was ended before it returned",
    cause: stopReason === "max_time" ? "It worked for max_time_ms" : "timeout_ms was over, and on_timeout is stop",
    nextStep: "Pass a smaller piece of work, or go on without it. What it changed up to then is held.",
  })

/** What an originator is told of files that a child cannot have. */
export const setUpError = ({ reason: cause, fix: nextStep }: Refusal): PassOverError =>
  passOverError("E011", { message: "The subagent's files could not be set up", cause, nextStep })

const filesError = ({ reason, fix }: Refusal): PassOverError =>
  passOverError("E011", {
    message: "What the subagent changed could not be stored; its copy is kept",
    cause: reason,
    nextStep: `${fix} Then pass_over_apply or pass_over_reject: they store it first.`,
  })

const judge = (collected: Collected): Pick<WorkOutput, "status" | "error"> => {
  const { end, stopReason, returned, setUpError, returnError, changes } = collected
  if (setUpError) return { status: "failed", error: setUpError }
  if (returnError) return { status: "failed", error: returnError }
  if (changes.kind === "refused") return { status: "failed", error: filesError(changes) }
  // A child that had returned before it was ended has done its work.
  if (returned) return { status: returned.status, error: null }
  if (end.kind === "crashed") return { status: "failed", error: end.error }
  if (end.kind === "ended") return { status: "partial", error: null }
  return stopReason === "timeout" || stopReason === "max_time"
    ? { status: "timeout", error: timeoutError(stopReason) }
    : { status: "aborted", error: null }
}

/** The files that a pass changed. */
export const changedPaths = ({ artifacts }: WorkOutput): string[] =>
  artifacts.flatMap((artifact) => (artifact.type === "file_modification" ? [artifact.path] : []))

/** The output of a pass: what the child returned, or else what its transcript tells; files and tools as seen by program. */
export const buildWorkOutput = (collected: Collected): WorkOutput => {
  const { request, returned, messages, changes, copy } = collected
  const modifications = changes.kind === "changes" ? changes.modifications : []
  const shown = (text: string): string => (copy === undefined ? text : projectText(text, copy))
  const words = returned ? "" : shown(lastWords(messages))
  const results = collectToolResults(messages).map((result) => ({
    ...result,
    title: shown(result.title),
    output: shown(result.output),
  }))
  const findings = (returned?.findings ?? []).map((finding) => ({ type: "finding" as const, ...finding }))
  const claimed = returned?.artifacts ?? []
  const all = [...findings, ...claimed.filter((artifact) => artifact.type === "finding")]
  return {
    pass_over_id: request.pass_over_id,
    return_to: request.originating_agent_id,
    ...judge(collected),
    child_session_id: collected.childSessionID,
    source: returned ? "return" : words === "" ? "program" : "transcript",
    summary: {
      text: returned?.summary ?? words,
      decision: returned?.decision ?? null,
      findings: all.map(renderFinding),
      recommendations: [...(returned?.recommendations ?? [])],
    },
    artifacts: [...modifications, ...findings, ...claimed, ...results],
    left_out: changes.kind === "changes" ? changes.leftOut : [],
    metadata: { ...request.metadata, attempts: collected.attempts, completed_at: collected.completedAt },
  }
}

/** The same output as the answer to a later pass that asks the same. */
export const reuseOutput = (stored: WorkOutput, request: PassOverRequest, completedAt: string): WorkOutput => ({
  ...stored,
  pass_over_id: request.pass_over_id,
  return_to: request.originating_agent_id,
  metadata: {
    ...request.metadata,
    completed_at: completedAt,
    cached_from: stored.metadata.cached_from ?? stored.pass_over_id,
  },
})
