import type { Policy } from "./policy.ts"

export type RetryPolicy = Pick<Policy, "max_retries" | "retry_delay_ms" | "backoff_multiplier">

/** No wait is longer, whatever the multiplier makes of it. */
export const MAX_DELAY_MS = 600_000
/** A delay is this much longer or shorter, so that many who failed at once do not come back at once. */
const JITTER = 0.2

/**
 * How long to wait before each further attempt, in ms: the delay, growing by the multiplier, each with its jitter.
 *
 * @param random from 0 to below 1
 */
export const retryDelays = (policy: RetryPolicy, random: () => number): number[] =>
  Array.from({ length: policy.max_retries }, (_, at) => {
    const delay = policy.retry_delay_ms * policy.backoff_multiplier ** at
    return Math.round(Math.min(delay, MAX_DELAY_MS) * (1 - JITTER + 2 * JITTER * random()))
  })

export type Retried<Outcome> =
  | { readonly kind: "ended"; readonly outcome: Outcome; readonly attempts: number }
  /** Aborted before an attempt could end; `last` is what the one before ended with. */
  | { readonly kind: "aborted"; readonly last: Outcome | undefined; readonly attempts: number }

export type RetryDeps<Outcome> = {
  readonly policy: RetryPolicy
  /** @param number from 1. Rejects only for what no further attempt can help. */
  readonly attempt: (number: number) => Promise<Outcome>
  /** Whether another attempt may do better. */
  readonly isRecoverable: (outcome: Outcome) => boolean
  /** Told before the wait, so that no attempt goes unrecorded. */
  readonly onFailure?: (outcome: Outcome, about: { attempt: number; delayMs: number }) => Promise<void>
  readonly signal: AbortSignal
  readonly random?: () => number
}

/** Resolves after the time or at the abort, whichever is first; leaves neither timer nor listener. */
const pause = (delayMs: number, signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    const end = (): void => {
      clearTimeout(timer)
      signal.removeEventListener("abort", end)
      resolve()
    }
    const timer = setTimeout(end, delayMs)
    signal.addEventListener("abort", end)
    if (signal.aborted) end()
  })

/** Tries until an attempt ends well, ends in what no other can help, or there are no more; an abort ends it at once. */
export const runWithRetry = async <Outcome>(deps: RetryDeps<Outcome>): Promise<Retried<Outcome>> => {
  const { policy, attempt, isRecoverable, onFailure, signal, random = Math.random } = deps
  const delays = retryDelays(policy, random)
  let last: Outcome | undefined
  for (let number = 1; ; number++) {
    if (signal.aborted) return { kind: "aborted", last, attempts: number - 1 }
    const outcome = await attempt(number)
    const delayMs = delays[number - 1]
    if (delayMs === undefined || signal.aborted || !isRecoverable(outcome))
      return { kind: "ended", outcome, attempts: number }
    last = outcome
    await onFailure?.(outcome, { attempt: number, delayMs })
    await pause(delayMs, signal)
  }
}
