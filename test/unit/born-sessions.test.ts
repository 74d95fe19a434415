import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { createBornSessions } from "../../.opencode/baton/compaction/born-sessions.ts"
import { parseTask } from "../../.opencode/baton/task/parse.ts"
import { promised } from "../requirements.ts"
import { assistantMessage, textPart, userMessage } from "../support/stored-messages.ts"

const said = (text: string) => [textPart(text)]
const heard = (sessions: ReturnType<typeof createBornSessions>, sessionID: string, text: string, id = "msg_u") =>
  sessions.noteMessage(sessionID, { id }, said(text))

describe("a session that surely has no task", () => {
  test(promised("task.B4", "is one born here whose every message was heard and names none"), () => {
    const sessions = createBornSessions()
    sessions.born("ses_1", undefined)
    expect(heard(sessions, "ses_1", "Hello.")).toBe("taskless")
    expect(sessions.checkFirstRequest("ses_1", [userMessage(said("Hello."))])).toBe("taskless")
    // After a compaction there are user messages that nobody wrote; what was whole stays whole.
    expect(sessions.checkFirstRequest("ses_1", [userMessage([]), userMessage([]), userMessage([])])).toBe("taskless")
    expect([sessions.find("ses_1"), sessions.isSurelyTaskless("ses_1")]).toEqual(["taskless", true])
  })

  test(promised("task.B2", "is none that was there before, such as a resumed one"), () => {
    const sessions = createBornSessions()
    expect(heard(sessions, "ses_1", "Hello.")).toBeUndefined()
    expect(sessions.checkFirstRequest("ses_1", [userMessage(said("Hello."))])).toBeUndefined()
  })

  test(promised("task.B2", "is no fork, which begins with messages that were not heard"), () => {
    const sessions = createBornSessions()
    sessions.born("ses_1", undefined)
    heard(sessions, "ses_1", "Go on.")
    const messages = [userMessage(said("Task: ts-b54507"), "msg_old"), assistantMessage(), userMessage(said("Go on."))]
    expect(sessions.checkFirstRequest("ses_1", messages)).toBeUndefined()
    expect(sessions.find("ses_1")).toBeUndefined()
  })

  test(promised("task.B2", "is no fork whose older messages alone are on their way to a summariser"), () => {
    const sessions = createBornSessions()
    sessions.born("ses_1", undefined)
    heard(sessions, "ses_1", "Go on.")
    expect(sessions.isSurelyTaskless("ses_1")).toBe(false)
    expect(sessions.checkFirstRequest("ses_1", [userMessage(said("Task: ts-b54507"), "msg_old")])).toBeUndefined()
  })

  test("are bounded: the oldest is looked up like any other again", () => {
    const sessions = createBornSessions()
    for (let at = 0; at <= 1_000; at++) sessions.born(`ses_${at}`, undefined)
    expect([sessions.find("ses_0"), sessions.find("ses_1"), sessions.find("ses_1000")]).toEqual([
      undefined,
      "taskless",
      "taskless",
    ])
  })

  test(promised("task.B3", "is a child only when its parent is"), () => {
    const sessions = createBornSessions()
    sessions.born("ses_1", undefined)
    sessions.born("ses_2", "ses_1")
    sessions.born("ses_3", "ses_unknown")
    expect([sessions.find("ses_2"), sessions.find("ses_3")]).toEqual(["taskless", undefined])
    heard(sessions, "ses_1", "Task: ts-b54507")
    sessions.born("ses_4", "ses_1")
    expect(sessions.find("ses_4")).toBeUndefined()
  })

  test(promised("task.B1", "is none as soon as a text names a task, in whatever form the parser takes"), () => {
    const id = fc.tuple(fc.constantFrom("ts-", "EP-", "abc-"), fc.stringMatching(/^[0-9a-f]{3,11}[0-9]$/))
    const line = id.map(([prefix, hex]) => `Task: ${prefix}${hex}`)
    fc.assert(
      fc.property(fc.constantFrom("", "\uFEFF", '"', "a\r\n", "```\n"), line, (before, task) => {
        fc.pre(parseTask(before + task) !== undefined)
        const sessions = createBornSessions()
        sessions.born("ses_1", undefined)
        expect(heard(sessions, "ses_1", before + task)).toBe("with a task")
      }),
    )
  })
})

describe("a session born here whose message named a task", () => {
  const begin = () => {
    const sessions = createBornSessions()
    sessions.born("ses_1", undefined)
    heard(sessions, "ses_1", "Task: ts-b54507", "msg_1")
    return sessions
  }

  test(promised("task.B2", "is handed over once, with what passed by before the feature was loaded"), () => {
    const sessions = begin()
    sessions.born("ses_2", undefined)
    expect(sessions.checkFirstRequest("ses_1", [userMessage(said("Task: ts-b54507"), "msg_1")])).toBe("with a task")
    sessions.noteContext("ses_1", 200_000)
    expect(heard(sessions, "ses_1", "Go on.", "msg_2")).toBe("with a task")
    expect(sessions.handOver()).toEqual([{ sessionID: "ses_1", isTurnSeen: true, contextTokens: 200_000 }])
    expect([sessions.handOver(), sessions.find("ses_1"), sessions.find("ses_2")]).toEqual([[], undefined, "taskless"])
  })

  test(promised("task.B2", "is handed over without a turn before its first request"), () => {
    expect(begin().handOver()).toEqual([{ sessionID: "ses_1", isTurnSeen: false }])
  })

  test(promised("task.B2", "is none when it is a fork, whose older messages nobody heard"), () => {
    const sessions = begin()
    const messages = [userMessage(said("Hello."), "msg_0"), userMessage(said("Task: ts-b54507"), "msg_1")]
    expect(sessions.checkFirstRequest("ses_1", messages)).toBeUndefined()
    expect(sessions.handOver()).toEqual([])
  })

  test(promised("task.B3", "leaves its children to be looked up, and is told apart when it is forgotten"), () => {
    const sessions = begin()
    sessions.born("ses_2", "ses_1")
    expect([sessions.find("ses_2"), sessions.isSurelyTaskless("ses_1")]).toEqual([undefined, false])
    expect([sessions.forget("ses_1"), sessions.forget("ses_1")]).toEqual(["with a task", undefined])
  })
})
