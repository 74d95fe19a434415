import { createLearningCalls, type LearningLedger } from "../../.opencode/baton/ledger/learning-calls.ts"
import type { RunLedger } from "./memory-ledger/memory-ledger.ts"

/** The learnings of any ledger that a test can run, through the very calls that Baton makes. */
export const learningLedgerOn = (run: RunLedger): LearningLedger =>
  createLearningCalls({
    read: async (args) => ({ kind: "exited", ...(await run(args)) }),
    write: async (args) => {
      const { exitCode, stderr } = await run(args)
      return exitCode === 0 ? { kind: "written" } : { kind: "refused", reason: stderr }
    },
  })
