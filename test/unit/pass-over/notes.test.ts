import { describe, expect, test } from "vitest"
import type { WorkOutput } from "../../../.opencode/baton/pass-over/contract.ts"
import { createResultNotes } from "../../../.opencode/baton/pass-over/result/notify.ts"
import { promised } from "../../requirements.ts"
import { passRecord, passRequest, workContext, workOutput } from "../../support/opencode/pass-over-values.ts"
import { createRecordedLog } from "../../support/recorded-log.ts"

const SUMMARY = { text: "All is well.", findings: [], recommendations: [] }
const TASK = { id: "ts-b54507", role: "worker", text: "Teach the parser CRLF" } as const

const setUp = ({ hasUser = true } = {}) => {
  const shown: { title: string; message: string; variant: string }[] = []
  const logged: unknown[] = []
  const note = createResultNotes({
    outbox: { add: async (entry) => void logged.push(entry) },
    tui: {
      showToast: async ({ title, message, variant }) => {
        shown.push({ title, message, variant })
        return { kind: "ok", value: true }
      },
    },
    hasUser,
    log: createRecordedLog(),
  })
  return { note, shown, logged }
}

const recordOf = (notify: "always" | "only_issues" | "never", output: Partial<WorkOutput> = {}) => {
  const record = passRecord({ child_session_id: "ses_child", output: workOutput(output) })
  return { ...record, policy: { ...record.policy, values: { ...record.policy.values, notify_on_return: notify } } }
}

describe("a result that is back", () => {
  test.each([
    ["always", {}, ["success"]],
    ["always", { status: "failed" }, ["warning"]],
    ["only_issues", {}, []],
    ["only_issues", { status: "partial" }, ["warning"]],
    ["never", { status: "failed" }, []],
  ] as const)(
    promised("pass-over.A6", "with notify_on_return %s and %j is shown as %j"),
    async (notify, output, variants) => {
      const { note, shown } = setUp()
      await note(recordOf(notify, output))
      expect(shown.map(({ variant }) => variant)).toEqual(variants)
      for (const { title } of shown) expect(title).toBe("audit returned")
    },
  )

  test.each<[Partial<WorkOutput>, string]>([
    [{}, "approved: All is well."],
    [{ summary: { ...SUMMARY, decision: "changes_requested" } }, "changes requested: All is well."],
    [{ summary: { ...SUMMARY, decision: null } }, "completed: All is well."],
    [{ status: "failed" }, "failed: All is well."],
  ])(promised("pass-over.A6", "of %j is shown as %j"), async (output, message) => {
    const { note, shown } = setUp()
    await note(recordOf("always", output))
    expect(shown.map((toast) => toast.message)).toEqual([message])
  })

  test(promised("pass-over.A6", "is shown to nobody where nobody is there"), async () => {
    const { note, shown } = setUp({ hasUser: false })
    await note(recordOf("always"))
    expect(shown).toEqual([])
  })

  test(promised("pass-over.E3", "is a line of the task's log, and of none without a task"), async () => {
    const { note, logged } = setUp()
    await note(recordOf("never"))
    expect(logged).toEqual([])
    const request = passRequest({ work_context: workContext({ task: TASK as never }) })
    await note({ ...recordOf("never"), request })
    expect(logged).toEqual([
      {
        kind: "log",
        taskID: TASK.id,
        message: `Pass build → audit: completed, approved (${request.pass_over_id}, ses_child): code_review`,
      },
    ])
  })
})
