import { raceWithAbort, withDeadline } from "../../host/async.ts"
import type { ChildSessions, Prompt } from "../../host/child-sessions.ts"
import type { Log } from "../../host/log.ts"
import type { PermissionRule } from "../../host/permissions.ts"
import type { Result, StoredMessage } from "../../host/sessions.ts"
import { cutText } from "../../host/text.ts"
import { type PassOverError, passOverError } from "../errors.ts"
import { abortTree } from "../policy/chain.ts"
import type { Policy } from "../policy/policy.ts"

export type RetryPolicy = Pick<Policy, "max_retries" | "retry_delay_ms" | "backoff_multiplier">

/** Upper bound of a wait, for any multiplier. */
export const MAX_DELAY_MS = 600_000

/** The wait before another attempt, in ms. @param failed number of the attempts so far */
export const retryDelay = ({ retry_delay_ms, backoff_multiplier }: RetryPolicy, failed: number): number =>
  Math.min(retry_delay_ms * backoff_multiplier ** (failed - 1), MAX_DELAY_MS)

type RetryDeps<Outcome> = {
  readonly policy: RetryPolicy
  /** @param number from 1. Rejects only when no further attempt can help. */
  readonly attempt: (number: number) => Promise<Outcome>
  readonly isRecoverable: (outcome: Outcome) => boolean
  /** Called before the wait, so that every failure is recorded. */
  readonly onFailure: (outcome: Outcome) => Promise<void>
  readonly signal: AbortSignal
}

/**
 * Repeats an attempt until it succeeds, fails for good, or none is left; an abort ends it at once.
 *
 * @returns the last outcome; undefined when it was aborted before an attempt could end
 */
export const runWithRetry = async <Outcome>(
  deps: RetryDeps<Outcome>,
): Promise<{ readonly outcome: Outcome | undefined; readonly attempts: number }> => {
  const { policy, attempt, isRecoverable, onFailure, signal } = deps
  for (let number = 1; ; number++) {
    if (signal.aborted) return { outcome: undefined, attempts: number - 1 }
    const outcome = await attempt(number)
    const isLast = number > policy.max_retries
    if (isLast || signal.aborted || !isRecoverable(outcome)) return { outcome, attempts: number }
    await onFailure(outcome)
    await withDeadline(raceWithAbort([], signal), retryDelay(policy, number))
  }
}

/** Time that a stopped child may take to end, and the interval of repeated aborts. */
const STOP_GRACE_MS = 5_000
const STOP_AGAIN_MS = 250
/** Time that a child may continue its turn after its work is done. */
const CLOSING_MS = 60_000

export type ChildEnd =
  /** Its work is done. */
  | { readonly kind: "ended" }
  | { readonly kind: "crashed"; readonly error: PassOverError }
  /** It was aborted, by the pass or by the user. */
  | { readonly kind: "stopped" }

type ChildOptions = {
  readonly parentID: string
  readonly title: string
  readonly permission: readonly PermissionRule[]
  readonly prompt: Prompt
  /** Resolves when its work is done, perhaps before its turn is; the rest of the turn is not waited for. */
  readonly workDone: Promise<void>
  /** Stops the child and everything below it. */
  readonly signal: AbortSignal
  /** Called before the child's first step, which does not wait for what this stores. */
  readonly onSession: (sessionID: string) => Promise<void>
  /** Called when the child's turn is over, perhaps after this program has stopped waiting for it. */
  readonly onTurnOver: (sessionID: string) => void
}

const crashed = (message: string, cause: string): ChildEnd => ({
  kind: "crashed",
  error: passOverError("E011", { message, cause }),
})

const describeModelError = (error: { name: string; data: Record<string, unknown> }): string => {
  const { message } = error.data
  return cutText(`${error.name}${typeof message === "string" ? `: ${message}` : ""}`, 500)
}

/** Repeats the abort until the turn has ended: OpenCode drops an abort that comes while a prompt is being stored. */
const endTurn = async (
  { sessions, log }: { sessions: ChildSessions; log: Log },
  sessionID: string,
  turn: Promise<unknown>,
): Promise<void> => {
  const over = performance.now() + STOP_GRACE_MS
  while (performance.now() < over) {
    await abortTree(sessions, sessionID, log)
    const ended = await withDeadline(turn, STOP_AGAIN_MS)
    if (ended.kind !== "late") return
  }
  log.warn("a child session did not end when it was told to", { sessionID })
}

/** Waits for the end of the turn of a child that has returned; aborts it after a minute, or when the pass is cancelled. */
const drainTurn = async (
  deps: { sessions: ChildSessions; log: Log },
  { sessionID, turn, signal }: { sessionID: string; turn: Promise<unknown>; signal: AbortSignal },
): Promise<void> => {
  const over = turn.then(() => ({ kind: "over" as const }))
  const first = await withDeadline(raceWithAbort([over], signal), CLOSING_MS)
  if (first.kind !== "done" || first.value.kind === "stopped") await endTurn(deps, sessionID, turn)
}

/** Creates a child session, runs its agent, and waits for the end of its work. Never throws. */
export const runChild = async (
  { sessions, log }: { sessions: ChildSessions; log: Log },
  order: ChildOptions,
): Promise<ChildEnd> => {
  const { signal, prompt } = order
  if (signal.aborted) return { kind: "stopped" }
  const created = await sessions.create(order)
  if (created.kind === "failed") return crashed("The child session could not be created", created.reason)
  const sessionID = created.value
  const noted = order.onSession(sessionID)
  const turn = sessions.prompt(sessionID, prompt).finally(() => order.onTurnOver(sessionID))
  try {
    await noted
  } catch (error) {
    // A child that is not recorded must not work.
    await endTurn({ sessions, log }, sessionID, turn)
    throw error
  }
  const first = await raceWithAbort<{ kind: "over"; answer: Result<StoredMessage> } | { kind: "returned" }>(
    [turn.then((answer) => ({ kind: "over", answer })), order.workDone.then(() => ({ kind: "returned" }))],
    signal,
  )
  if (first.kind === "stopped") {
    await endTurn({ sessions, log }, sessionID, turn)
    return { kind: "stopped" }
  }
  if (first.kind === "returned") {
    void drainTurn({ sessions, log }, { sessionID, turn, signal })
    return { kind: "ended" }
  }
  const { answer } = first
  if (answer.kind === "failed") return crashed("The subagent's turn failed", answer.reason)
  const { info } = answer.value
  const error = info.role === "assistant" ? info.error : undefined
  if (!error) return { kind: "ended" }
  if (error.name === "MessageAbortedError") return { kind: "stopped" }
  return crashed("The subagent's model gave an error", describeModelError(error))
}
