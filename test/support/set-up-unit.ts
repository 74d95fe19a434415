import fc, { type RunDetails } from "fast-check"
import { afterEach, vi } from "vitest"
import { REPLAY, runs, SEED } from "./effort.ts"

const report = <T>(details: RunDetails<T>): void => {
  if (!details.failed) return
  throw new Error(`${fc.defaultReportMessage(details)}\n\nThe same random values again: ${REPLAY}`, {
    cause: details.errorInstance,
  })
}

fc.configureGlobal({ seed: SEED, numRuns: runs(100), reporter: report })

// The files of a worker share its process.
afterEach(() => {
  vi.unstubAllEnvs()
  vi.useRealTimers()
})

// Commands show local times.
process.env.TZ = "UTC"
