import { mkdirSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import fc, { type RunDetails } from "fast-check"
import { afterEach, beforeEach, onTestFinished, vi } from "vitest"
import { REPLAY, runs, SEED } from "./effort.ts"

const report = <T>(details: RunDetails<T>): void => {
  if (!details.failed) return
  throw new Error(`${fc.defaultReportMessage(details)}\n\nThe same random values again: ${REPLAY}`, {
    cause: details.errorInstance,
  })
}

fc.configureGlobal({ seed: SEED, numRuns: runs(100), reporter: report })

// The files of a worker share its process.
afterEach(() => void vi.useRealTimers())
// What a test opened ends in the environment that it was opened in: registered first, this is called last.
beforeEach(() => onTestFinished(() => void vi.unstubAllEnvs()))

// A prog on PATH finds no ledger of this account.
process.env.HOME = join(tmpdir(), "baton-test-home")
mkdirSync(process.env.HOME, { recursive: true })
// A copy of a ledger is made in the background, where a test's folder may be gone already.
process.env.BATON_COPIES = "off"
// Commands show local times.
process.env.TZ = "UTC"
