import fc from "fast-check"
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest"
import {
  MAX_DELAY_MS,
  type RetryPolicy,
  retryDelays,
  runWithRetry,
} from "../../../.opencode/baton/pass-over/child/session.ts"
import { promised } from "../../requirements.ts"

const POLICY: RetryPolicy = { max_retries: 3, retry_delay_ms: 1000, backoff_multiplier: 2 }

const anyPolicy: fc.Arbitrary<RetryPolicy> = fc.record({
  max_retries: fc.integer({ min: 0, max: 10 }),
  retry_delay_ms: fc.integer({ min: 0, max: 600_000 }),
  backoff_multiplier: fc.double({ min: 1, max: 10, noNaN: true }),
})

describe("the delays", () => {
  test(promised("pass-over.E2", "are the document's when the jitter is in the middle"), () => {
    expect(retryDelays(POLICY, () => 0.5)).toEqual([1000, 2000, 4000])
    expect(retryDelays({ ...POLICY, max_retries: 0 }, () => 0.5)).toEqual([])
  })

  test(
    promised("pass-over.E2", "grow, stay within a fifth of what they are meant to be, and never without end"),
    () => {
      const random = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true })
      fc.assert(
        fc.property(anyPolicy, random, (policy, value) => {
          const delays = retryDelays(policy, () => value)
          expect(delays).toHaveLength(policy.max_retries)
          for (const [at, delay] of delays.entries()) {
            const meant = Math.min(policy.retry_delay_ms * policy.backoff_multiplier ** at, MAX_DELAY_MS)
            expect(delay).toBeGreaterThanOrEqual(Math.floor(meant * 0.8))
            expect(delay).toBeLessThanOrEqual(Math.ceil(meant * 1.2))
            expect(delay).toBeGreaterThanOrEqual(delays[at - 1] ?? 0)
          }
        }),
      )
    },
  )
})

describe("the attempts", () => {
  beforeEach(() => void vi.useFakeTimers())
  afterEach(() => void vi.useRealTimers())

  /** Outcomes in order; the last one repeats. */
  const setUp = (...outcomes: string[]) => {
    const abort = new AbortController()
    const attempts: number[] = []
    const failures: string[] = []
    const running = runWithRetry<string>({
      policy: POLICY,
      attempt: async (number) => {
        attempts.push(number)
        return outcomes[number - 1] ?? outcomes.at(-1) ?? ""
      },
      isRecoverable: (outcome) => outcome.startsWith("crash"),
      onFailure: async (outcome, { attempt, delayMs }) => void failures.push(`${attempt} ${outcome} ${delayMs}`),
      signal: abort.signal,
      random: () => 0.5,
    })
    return { abort, attempts, failures, running }
  }

  test(promised("pass-over.E2", "end with the first that ends well"), async () => {
    const { running, failures } = setUp("crash 1", "crash 2", "done")
    await vi.runAllTimersAsync()
    expect(await running).toEqual({ kind: "ended", outcome: "done", attempts: 3 })
    expect(failures).toEqual(["1 crash 1 1000", "2 crash 2 2000"])
  })

  test(promised("pass-over.E2", "end with the last failure when there are no more"), async () => {
    const { running, attempts, failures } = setUp("crash")
    await vi.runAllTimersAsync()
    expect(await running).toEqual({ kind: "ended", outcome: "crash", attempts: 4 })
    expect([attempts.length, failures.length]).toEqual([4, 3])
  })

  test(promised("pass-over.E2", "are not repeated for what no other attempt can help"), async () => {
    const { running } = setUp("refused")
    expect(await running).toEqual({ kind: "ended", outcome: "refused", attempts: 1 })
    expect(vi.getTimerCount()).toBe(0)
  })

  test(promised("pass-over.E2", "wait their time and end at once with the abort, leaving no timer"), async () => {
    const { running, abort, attempts } = setUp("crash")
    await vi.advanceTimersByTimeAsync(999)
    expect(attempts).toEqual([1])
    await vi.advanceTimersByTimeAsync(1)
    expect(attempts).toEqual([1, 2])
    abort.abort()
    expect(await running).toEqual({ kind: "aborted", last: "crash", attempts: 2 })
    expect([attempts, vi.getTimerCount()]).toEqual([[1, 2], 0])
  })

  test(promised("pass-over.E2", "are none when it is aborted before the first"), async () => {
    const running = runWithRetry<string>({
      policy: POLICY,
      attempt: async () => "done",
      isRecoverable: () => true,
      signal: AbortSignal.abort(),
    })
    expect(await running).toEqual({ kind: "aborted", last: undefined, attempts: 0 })
  })
})
