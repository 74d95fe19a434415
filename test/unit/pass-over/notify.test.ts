import { describe, expect, test } from "vitest"
import type { Prompt } from "../../../.opencode/baton/host/child-sessions.ts"
import type { Notice as Toast } from "../../../.opencode/baton/host/tui.ts"
import type { Artifact, WorkOutput } from "../../../.opencode/baton/pass-over/contract.ts"
import { createAnnouncer, createResultRecorder, type Notice } from "../../../.opencode/baton/pass-over/result/notify.ts"
import { promised } from "../../requirements.ts"
import { createFakeSessions } from "../../support/opencode/fake-sessions.ts"
import {
  builtInPolicy,
  passRecord,
  passRequest,
  workContext,
  workOutput,
} from "../../support/opencode/pass-over-values.ts"
import { textPart, userMessage } from "../../support/opencode/stored-messages.ts"
import { createRecordedLog } from "../../support/recorded-log.ts"

describe("a result that nobody waits for", () => {
  const NOTICE: Notice = { passID: "pass_1", text: "one" }

  const open = ({ isBusy = false, stored = "Go.", canStart = true, unannounced = [NOTICE] } = {}) => {
    const messages = [userMessage([textPart(stored)])]
    const state = { canStart, unannounced, started: [] as Prompt[] }
    const announcer = createAnnouncer({
      sessions: createFakeSessions(new Map([["ses_1", { messages }]])),
      childSessions: {
        isBusy: async () => ({ kind: "ok", value: isBusy }),
        start: async (_id, prompt) => {
          if (!state.canStart) return { kind: "failed", reason: "no" }
          state.started.push(prompt)
          return { kind: "ok", value: undefined }
        },
      },
      notices: async () => state.unannounced,
      acknowledge: async (passID) => {
        state.unannounced = state.unannounced.filter((notice) => notice.passID !== passID)
      },
      log: createRecordedLog(),
    })
    return { announcer, state }
  }

  test(
    promised(
      "pass-over.A4",
      "a result that nobody waits for is told at once to an idle session, with its own agent and model",
    ),
    async () => {
      const { announcer, state } = open({ unannounced: [NOTICE, { passID: "pass_2", text: "two" }] })
      await announcer.notify("ses_1")
      const context = "[result of pass_1]\none\n\n[result of pass_2]\ntwo"
      expect(state.started).toEqual([{ agent: "build", model: { providerID: "p", modelID: "m" }, context }])
      await announcer.idle("ses_1")
      expect(state.started).toHaveLength(1)
    },
  )

  test.each([
    ["for a session that is busy", { isBusy: true }, "notify"],
    ["of an earlier process, until the session is used", {}, "queue"],
  ] as const)(promised("pass-over.A4", "an unawaited result waits: %s"), async (_what, given, begin) => {
    const { announcer, state } = open(given)
    await announcer[begin]("ses_1")
    await announcer.idle("ses_other")
    expect(state.started).toEqual([])
    await announcer.idle("ses_1")
    expect(state.started).toHaveLength(1)
  })

  test(
    promised(
      "pass-over.A4",
      "a result that nobody waits for is not told again when it stands in the session, and is noted as told",
    ),
    async () => {
      const { announcer, state } = open({ stored: "[result of pass_1]\none" })
      await announcer.notify("ses_1")
      expect(state).toMatchObject({ started: [], unannounced: [] })
    },
  )

  test(promised("pass-over.A4", "an unawaited result that could not be told is told at the next idle"), async () => {
    const { announcer, state } = open({ canStart: false })
    await announcer.notify("ses_1")
    expect(state.unannounced).toHaveLength(1)
    state.canStart = true
    await announcer.idle("ses_1")
    expect(state.started).toHaveLength(1)
  })
})

describe("a result that is back", () => {
  type Notify = "always" | "only_issues" | "never"
  const { summary } = workOutput()
  const FINDING: Artifact = { type: "finding", severity: "error", message: "m" }

  const setUp = () => {
    const shown: Toast[] = []
    const logged: unknown[] = []
    const note = createResultRecorder({
      outbox: { add: async (entry) => void logged.push(entry) },
      notices: (notice) => void shown.push(notice),
    })
    return { note, shown, logged }
  }

  const recordOf = (notify_on_return: Notify, output: Partial<WorkOutput> = {}) =>
    passRecord({
      child_session_id: "ses_child",
      output: workOutput(output),
      policy: builtInPolicy({ notify_on_return }),
    })

  test.each<[Notify, Partial<WorkOutput>, string[]]>([
    ["always", {}, ["false, approved, 2 files read: All is well."]],
    [
      "always",
      { summary: { ...summary, decision: "changes_requested" } },
      ["false, changes requested, 2 files read: All is well."],
    ],
    ["always", { summary: { ...summary, decision: null } }, ["false, completed, 2 files read: All is well."]],
    ["always", { artifacts: [FINDING, FINDING] }, ["true, approved, 2 findings, 2 files read: All is well."]],
    ["always", { status: "failed" }, ["true, failed, 2 files read: All is well."]],
    ["only_issues", {}, []],
    ["only_issues", { status: "partial" }, ["true, partial, 2 files read: All is well."]],
    ["never", { status: "failed" }, []],
  ])(promised(["pass-over.A6", "notices.A1"], "notify_on_return %s: %j shows %j"), async (notify, output, toasts) => {
    const { note, shown } = setUp()
    await note(recordOf(notify, output))
    expect(shown.map(({ isProblem, message }) => `${isProblem}, ${message}`)).toEqual(toasts)
    for (const { title } of shown) expect(title).toBe("audit returned")
  })

  test(
    promised("pass-over.E3", "a result that is back is a line of the task's log, and of none without a task"),
    async () => {
      const { note, logged } = setUp()
      await note(recordOf("never"))
      expect(logged).toEqual([])
      const task = { id: "ts-b54507", role: "worker", block: "Teach the parser CRLF" } as const
      const request = passRequest({ work_context: workContext({ task }) })
      await note({ ...recordOf("never"), request })
      const message = `Pass build → audit: completed, approved (${request.pass_over_id}, ses_child): code_review`
      expect(logged).toEqual([{ kind: "log", taskID: task.id, message }])
    },
  )
})
