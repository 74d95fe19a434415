import { defineConfig } from "vitest/config"
import { EFFORT, SEED } from "./test/support/effort.ts"
import LongestFirst from "./test/support/longest-first.ts"

// Worked out once, not in every worker.
process.env.BATON_SEED = String(SEED)
// State that a test makes here needs no key of this machine's account.
process.env.BATON_STATE_KEY = "of the tests"

type Extra = {
  include?: string[]
  testTimeout?: number
  pool?: "forks"
  isolate?: boolean
  setupFiles?: string[]
  globalSetup?: string[]
}

/** Projects of a lower order run first. */
const project = (name: string, order: number, extra: Extra = {}) => ({
  test: {
    name,
    include: [`test/${name}/**/*.test.ts`],
    testTimeout: 20_000 * Math.max(1, EFFORT),
    hookTimeout: 120_000,
    // A poll ends at its event; vitest's second is too short for a busy machine.
    expect: { poll: { timeout: 15_000 } },
    sequence: { groupOrder: order },
    ...extra,
  },
})

/** One process for many files: a process for each costs more than its tests. */
const together: Extra = { pool: "forks", isolate: false }

export default defineConfig({
  test: {
    // Three keep two cores busy all the time.
    maxWorkers: 3,
    sequence: { sequencer: LongestFirst },
    reporters: ["default", "./test/support/failure-reporter.ts"],
    projects: [
      project("structure", 0, together),
      project("unit", 0, { ...together, setupFiles: ["test/support/set-up-unit.ts"] }),
      project("contract", 1, { ...together, testTimeout: 60_000 }),
      project("e2e", 2, {
        ...together,
        include: ["test/e2e/**/*.test.ts", "test/storm/**/*.test.ts"],
        setupFiles: ["test/support/set-up-e2e.ts"],
        globalSetup: ["test/e2e/global-setup.ts"],
      }),
    ],
  },
})
