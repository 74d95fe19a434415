import { defineConfig } from "vitest/config"

/** Real OpenCode takes seconds a run; everything else answers in milliseconds. */
const E2E_TIMEOUT_MS = 120_000

const project = (name: string, extra: { testTimeout?: number; globalSetup?: string[] } = {}) => ({
  test: { name, include: [`test/${name}/**/*.test.ts`], testTimeout: 20_000, hookTimeout: 120_000, ...extra },
})

export default defineConfig({
  test: {
    maxWorkers: 2,
    projects: [
      project("unit"),
      project("structure"),
      project("contract", { testTimeout: 60_000 }),
      project("e2e", { testTimeout: E2E_TIMEOUT_MS }),
    ],
  },
})
