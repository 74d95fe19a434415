import { vi } from "vitest"
import { deadline } from "./opencode/deadline.ts"
import { closeTaskProjectsAfterTests } from "./opencode/task-project.ts"

/** A run of real OpenCode takes seconds. */
const E2E_TIMEOUT_MS = 120_000
/** As in vitest.config.ts, which does not know how slow the machine is. */
const POLL_DEADLINE_MS = 15_000

vi.setConfig({
  testTimeout: deadline(E2E_TIMEOUT_MS),
  hookTimeout: deadline(E2E_TIMEOUT_MS),
  expect: { poll: { timeout: deadline(POLL_DEADLINE_MS) } },
})
closeTaskProjectsAfterTests()
