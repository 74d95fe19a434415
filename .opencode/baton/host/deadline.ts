export type Timed<T> = { kind: "done"; value: T } | { kind: "late" } | { kind: "failed"; error: unknown }

/**
 * Waits for `work` no longer than `deadlineMs` and never rejects.
 *
 * The work itself is not stopped: whoever needs that passes it an AbortSignal or a deadline of its own.
 */
export const withDeadline = async <T>(work: Promise<T>, deadlineMs: number): Promise<Timed<T>> => {
  const settled: Promise<Timed<T>> = work.then(
    (value) => ({ kind: "done", value }),
    (error: unknown) => ({ kind: "failed", error }),
  )
  let timer: ReturnType<typeof setTimeout> | undefined
  const late = new Promise<Timed<T>>((resolve) => {
    timer = setTimeout(() => resolve({ kind: "late" }), deadlineMs)
  })
  try {
    return await Promise.race([settled, late])
  } finally {
    clearTimeout(timer)
  }
}
