import { describe, expect, test } from "vitest"
import { createPreparations, PREPARATION_MS } from "../../../.opencode/baton/compaction/compaction.ts"
import { EMPTY_STATE } from "../../../.opencode/baton/compaction/session-state.ts"
import { promised } from "../../requirements.ts"
import { createRecordedLog } from "../../support/recorded-log.ts"
import { BINDING } from "../../support/task-binding.ts"

const setUp = ({ hasTask = true, failures = 0 } = {}) => {
  const log = createRecordedLog()
  let reads = 0
  let nowMs = 0
  const preparations = createPreparations({
    tasks: { find: async () => (hasTask ? BINDING : undefined) },
    sessionStates: {
      load: async () => {
        reads++
        if (reads <= failures) throw new Error("the disk is gone")
        return EMPTY_STATE
      },
    },
    sessions: { todos: async () => ({ kind: "ok", value: [] }) },
    ledger: { readTask: async () => ({ kind: "unknown" }) },
    prompts: { read: () => ({ kind: "text", path: "prompts/handoff.md", text: `Wording ${reads}.` }) },
    root: "/project",
    search: () => undefined,
    log,
    clock: () => nowMs,
  })
  const pass = (ms: number): void => {
    nowMs += ms
  }
  return { preparations, reads: () => reads, pass, log }
}
const { sessionID } = BINDING

describe("what is prepared before the compacting hook is called", () => {
  test(promised("speed.G2", "is what the hook gets, without being read again"), async () => {
    const { preparations, reads } = setUp()
    preparations.begin(sessionID)
    expect(await preparations.take(sessionID)).toMatchObject({ binding: BINDING, instructions: "Wording 1." })
    expect(reads()).toBe(1)
  })

  test(promised("compaction.C2", "is used once: the next compaction reads the wording anew"), async () => {
    const { preparations } = setUp()
    preparations.begin(sessionID)
    await preparations.take(sessionID)
    expect(await preparations.take(sessionID)).toMatchObject({ instructions: "Wording 2." })
  })

  test(promised("compaction.C2", "is read anew when the compaction it was for did not come"), async () => {
    const { preparations, pass } = setUp()
    preparations.begin(sessionID)
    pass(PREPARATION_MS)
    expect(await preparations.take(sessionID)).toMatchObject({ instructions: "Wording 2." })
  })

  test(promised("compaction.C9", "that failed is read by the hook itself, and a line says so"), async () => {
    const { preparations, log } = setUp({ failures: 1 })
    preparations.begin(sessionID)
    expect(await preparations.take(sessionID)).toMatchObject({ instructions: "Wording 2." })
    expect(log.lines).toContainEqual(
      expect.objectContaining({ level: "warn", message: "compaction not prepared: the hook will" }),
    )
  })

  test(promised("task.B4", "is nothing for a session without a task"), async () => {
    const { preparations, reads } = setUp({ hasTask: false })
    preparations.begin(sessionID)
    expect(await preparations.take(sessionID)).toBeUndefined()
    expect(reads()).toBe(0)
  })
})
