import { withDeadline } from "./deadline.ts"
import { describeError } from "./log.ts"

/** `missing`: OpenCode answered that there is no such thing. */
export type Answer<T> = { kind: "answer"; value: T } | { kind: "failed"; reason: string; missing?: boolean }

type Read<T> = (data: unknown, response: Response | undefined) => Answer<T>

/** Makes one call to OpenCode and reads what comes back; never throws. */
export type ClientCall = <T>(
  what: string,
  work: () => Promise<{ data?: unknown; error?: unknown; response?: Response }>,
  read: Read<T>,
) => Promise<Answer<T>>

export const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null

export const malformed = (what: string, received: unknown): Answer<never> => {
  const shown = JSON.stringify(received)?.slice(0, 80) ?? String(received)
  return { kind: "failed", reason: `${what} answered in an unknown shape: ${shown}` }
}

const readRaw = <T>(what: string, raw: unknown, read: Read<T>): Answer<T> => {
  if (!isRecord(raw)) return malformed(what, raw)
  const { data, error } = raw
  const response = raw.response instanceof Response ? raw.response : undefined
  if (error === undefined) return read(data, response)
  const reason = `${what} failed: ${JSON.stringify(error).slice(0, 200)}`
  return { kind: "failed", reason, ...(response?.status === 404 ? { missing: true } : {}) }
}

/**
 * Unwraps `{data, error}` (errors do not throw in the 1.x SDK) and gives each call a deadline.
 *
 * @param deadlineMs `Number.POSITIVE_INFINITY` for a call that lasts as long as a model works
 */
export const createClientCall =
  (deadlineMs: number): ClientCall =>
  async (what, work, read) => {
    // A client that throws at once fails like one that rejects.
    const started = Promise.resolve().then(() => work())
    if (deadlineMs === Number.POSITIVE_INFINITY) {
      try {
        return readRaw(what, await started, read)
      } catch (error) {
        return { kind: "failed", reason: `${what} failed: ${describeError(error)}` }
      }
    }
    const outcome = await withDeadline(started, deadlineMs)
    if (outcome.kind === "late") return { kind: "failed", reason: `${what} did not answer within ${deadlineMs} ms` }
    if (outcome.kind === "failed") return { kind: "failed", reason: `${what} failed: ${describeError(outcome.error)}` }
    return readRaw(what, outcome.value, read)
  }
