import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { createBornSessions } from "../../../.opencode/baton/compaction/hooks.ts"
import { parseTask } from "../../../.opencode/baton/task/parse.ts"
import { promised } from "../../requirements.ts"
import { assistantMessage, textPart, userMessage } from "../../support/opencode/stored-messages.ts"

const said = (text: string) => [textPart(text)]
const heard = (sessions: ReturnType<typeof createBornSessions>, sessionID: string, text: string, id = "msg_u") =>
  sessions.noteMessage(sessionID, { id }, said(text))

describe("a session that surely has no task", () => {
  test(promised("task.B4", "is one born here whose every message was heard and names none"), () => {
    const sessions = createBornSessions()
    sessions.born("ses_1", undefined)
    expect(heard(sessions, "ses_1", "Hello.")).toBe(true)
    expect(sessions.checkFirstRequest("ses_1", [userMessage(said("Hello."))])).toBe(true)
    // After a compaction there are user messages that nobody wrote; what was whole stays whole.
    expect(sessions.checkFirstRequest("ses_1", [userMessage([]), userMessage([]), userMessage([])])).toBe(true)
    expect([sessions.isTaskless("ses_1"), sessions.isSurelyTaskless("ses_1")]).toEqual([true, true])
  })

  test(promised("task.B2", "is none that was there before, such as a resumed one"), () => {
    const sessions = createBornSessions()
    expect(heard(sessions, "ses_1", "Hello.")).toBe(false)
    expect(sessions.checkFirstRequest("ses_1", [userMessage(said("Hello."))])).toBe(false)
  })

  test(promised("task.B2", "is no fork, which begins with messages that were not heard"), () => {
    const sessions = createBornSessions()
    sessions.born("ses_1", undefined)
    heard(sessions, "ses_1", "Go on.")
    const messages = [userMessage(said("Task: ts-b54507"), "msg_old"), assistantMessage(), userMessage(said("Go on."))]
    expect(sessions.checkFirstRequest("ses_1", messages)).toBe(false)
    expect(sessions.isTaskless("ses_1")).toBe(false)
  })

  test(promised("task.B2", "is no fork whose older messages alone are on their way to a summariser"), () => {
    const sessions = createBornSessions()
    sessions.born("ses_1", undefined)
    heard(sessions, "ses_1", "Go on.")
    expect(sessions.isSurelyTaskless("ses_1")).toBe(false)
    expect(sessions.checkFirstRequest("ses_1", [userMessage(said("Task: ts-b54507"), "msg_old")])).toBe(false)
  })

  test("are bounded: the oldest is looked up like any other again", () => {
    const sessions = createBornSessions()
    for (let at = 0; at <= 1_000; at++) sessions.born(`ses_${at}`, undefined)
    expect(["ses_0", "ses_1", "ses_1000"].map(sessions.isTaskless)).toEqual([false, true, true])
  })

  test(promised("task.B3", "is a child only when its parent is"), () => {
    const sessions = createBornSessions()
    sessions.born("ses_1", undefined)
    sessions.born("ses_2", "ses_1")
    sessions.born("ses_3", "ses_unknown")
    expect(["ses_2", "ses_3"].map(sessions.isTaskless)).toEqual([true, false])
    heard(sessions, "ses_1", "Task: ts-b54507")
    sessions.born("ses_4", "ses_1")
    expect(sessions.isTaskless("ses_4")).toBe(false)
  })

  test(promised("task.B1", "is none as soon as a text names a task, in whatever form the parser takes"), () => {
    const id = fc.tuple(fc.constantFrom("ts-", "EP-", "abc-"), fc.stringMatching(/^[0-9a-f]{3,11}[0-9]$/))
    const line = id.map(([prefix, hex]) => `Task: ${prefix}${hex}`)
    fc.assert(
      fc.property(fc.constantFrom("", "\uFEFF", '"', "a\r\n", "```\n"), line, (before, task) => {
        fc.pre(parseTask(before + task) !== undefined)
        const sessions = createBornSessions()
        sessions.born("ses_1", undefined)
        expect(heard(sessions, "ses_1", before + task)).toBe(false)
        expect(sessions.isTaskless("ses_1")).toBe(false)
      }),
    )
  })
})

test(promised("task.B3", "forgetting tells whether the session was taskless"), () => {
  const sessions = createBornSessions()
  sessions.born("ses_1", undefined)
  expect([sessions.forget("ses_1"), sessions.forget("ses_1")]).toEqual([true, false])
})
