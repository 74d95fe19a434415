import { describe, expect, test } from "vitest"
import type { Prompt } from "../../../.opencode/baton/host/child-sessions.ts"
import { createAnnouncer, type Notice } from "../../../.opencode/baton/pass-over/result/notify.ts"
import { promised } from "../../requirements.ts"
import { createFakeSessions } from "../../support/opencode/fake-sessions.ts"
import { textPart, userMessage } from "../../support/opencode/stored-messages.ts"
import { createRecordedLog } from "../../support/recorded-log.ts"

const open = ({ isBusy = false, stored = [] as string[], canStart = true } = {}) => {
  const messages = [userMessage([textPart("Go.")]), ...stored.map((text) => userMessage([textPart(text)]))]
  const state = { isBusy, canStart, untold: [] as Notice[], started: [] as Prompt[] }
  const announcer = createAnnouncer({
    sessions: createFakeSessions(new Map([["ses_1", { messages }]])),
    childSessions: {
      isBusy: async () => ({ kind: "ok", value: state.isBusy }),
      start: async (_id, prompt) => {
        if (!state.canStart) return { kind: "failed", reason: "no" }
        state.started.push(prompt)
        return { kind: "ok", value: undefined }
      },
    },
    notices: async () => state.untold,
    told: async (passID) => {
      state.untold = state.untold.filter((notice) => notice.passID !== passID)
    },
    log: createRecordedLog(),
  })
  return { announcer, state }
}

describe("a result that nobody waits for", () => {
  test(
    promised("pass-over.A4", "is told at once to a session that is idle, with its own agent and model"),
    async () => {
      const { announcer, state } = open()
      state.untold = [
        { passID: "pass_1", text: "one" },
        { passID: "pass_2", text: "two" },
      ]
      await announcer.due("ses_1")
      expect(state.started).toEqual([
        {
          agent: "build",
          model: { providerID: "p", modelID: "m" },
          context: "[result of pass_1]\none\n\n[result of pass_2]\ntwo",
        },
      ])
      await announcer.idle("ses_1")
      expect(state.started).toHaveLength(1)
    },
  )

  test(promised("pass-over.A4", "waits for a session that is busy"), async () => {
    const { announcer, state } = open({ isBusy: true })
    state.untold = [{ passID: "pass_1", text: "one" }]
    await announcer.due("ses_1")
    expect(state.started).toEqual([])
    await announcer.idle("ses_other")
    await announcer.idle("ses_1")
    expect(state.started).toHaveLength(1)
  })

  test(promised("pass-over.A4", "is not told again when it stands in the session, and is noted as told"), async () => {
    const { announcer, state } = open({ stored: ["[result of pass_1]\none"] })
    state.untold = [{ passID: "pass_1", text: "one" }]
    await announcer.due("ses_1")
    expect(state.started).toEqual([])
    expect(state.untold).toEqual([])
  })

  test(promised("pass-over.A4", "that could not be told is told at the next idle"), async () => {
    const { announcer, state } = open({ canStart: false })
    state.untold = [{ passID: "pass_1", text: "one" }]
    await announcer.due("ses_1")
    expect(state.untold).toHaveLength(1)
    state.canStart = true
    await announcer.idle("ses_1")
    expect(state.started).toHaveLength(1)
  })

  test(promised("pass-over.A4", "of an earlier process waits until the session is used"), async () => {
    const { announcer, state } = open()
    state.untold = [{ passID: "pass_1", text: "one" }]
    announcer.expect("ses_1")
    expect(state.started).toEqual([])
    await announcer.idle("ses_1")
    expect(state.started).toHaveLength(1)
  })
})
