import { describe, expect, test } from "vitest"
import * as records from "../../../.opencode/baton/task/session-task.ts"
import { promised } from "../../requirements.ts"
import { BINDING, recordOf, userWords } from "../../support/unit.ts"

const { emptyRecord, messageIDsOf, taskOf, withMessageID, withoutMessages, withSaid, withStep } = records
const [FIRST, SECOND] = ["ts-b54507", "ts-0aa111"]

const step = (taskID: string, messageID?: string, more: Partial<records.TaskStep> = {}): records.TaskStep => ({
  ...(messageID === undefined ? {} : { messageID }),
  taskID,
  role: "worker",
  hasRoleHeading: false,
  origin: "message",
  boundAt: "2026-01-01T00:00:00.000Z",
  ...more,
})

const saidIn = (task: records.SessionTask | undefined) => task?.said.words.map(({ text }) => text)

describe("a session's steps to its task", () => {
  const one = withStep(emptyRecord("ses_1"), step(FIRST, "msg_1"))
  const two = withStep(one, step(SECOND, "msg_2", { role: "planner" }))

  test(promised("task.B3", "steps end in the last one, which keeps the session's id and no mark of being made"), () => {
    expect(taskOf(undefined)).toBeUndefined()
    expect(taskOf(emptyRecord("ses_1"))).toBeUndefined()
    const made = withStep(one, step(SECOND, "msg_2", { isMade: true }))
    expect(taskOf(made)).toEqual({
      ...step(SECOND, "msg_2"),
      sessionID: "ses_1",
      said: { words: [], leftOut: 0 },
      order: undefined,
    })
    expect(taskOf(recordOf(BINDING))).toEqual({ ...BINDING, order: undefined })
  })

  test(promised("words.A3", "a session's steps go back where messages are hidden, and forward again"), () => {
    expect(taskOf(two, new Set(["msg_2"]))).toMatchObject({ taskID: FIRST, role: "worker" })
    expect(taskOf(two, new Set(["msg_1"]))).toMatchObject({ taskID: SECOND, role: "planner" })
    expect(taskOf(two, new Set(["msg_1", "msg_2"]))).toBeUndefined()
    expect(taskOf(two)).toMatchObject({ taskID: SECOND })
  })

  test(promised("words.A3", "a session's steps of a command get its message, a subagent's stays without one"), () => {
    const off = withStep(one, step(FIRST, undefined, { isOff: true }))
    expect(taskOf(off, new Set(["msg_1"])), "not hidden by another message").toMatchObject({ isOff: true })
    const known = withMessageID(off, "msg_3")
    expect(taskOf(known)).toMatchObject({ isOff: true, messageID: "msg_3" })
    expect(taskOf(known, new Set(["msg_3"]))?.isOff).toBeUndefined()
    const child = withStep(emptyRecord("ses_2"), step(FIRST, undefined, { origin: "parent" }))
    expect(withMessageID(child, "msg_3")).toEqual(child)
  })

  test(promised("soak.B4", "a session's steps are the last twenty"), () => {
    const many = Array.from({ length: 30 }, (_, at) => step(FIRST, `msg_${at}`)).reduce(withStep, emptyRecord("ses_1"))
    expect(many.steps.map(({ messageID }) => messageID)).toEqual(
      Array.from({ length: 20 }, (_, at) => `msg_${at + 10}`),
    )
  })
})

describe("a session's words", () => {
  const own = [userWords("Mind the lexer.", 1), userWords("Nor the AST.", 2)]
  const inherited = userWords("Of an earlier session.", 0, "ses_0", "msg_2")
  const first = withSaid(withStep(emptyRecord("ses_1"), step(FIRST, "msg_1")), FIRST, [...own, inherited])
  const both = withSaid(withStep(first, step(SECOND, "msg_3")), SECOND, [userWords("Plan it.", 3)])

  test(promised("words.A1", "a session's words are kept by task: back on the first one, its own are there"), () => {
    expect(saidIn(taskOf(both))).toEqual(["Plan it."])
    expect(saidIn(taskOf(withStep(both, step(FIRST, "msg_4"))))).toEqual([
      "Of an earlier session.",
      "Mind the lexer.",
      "Nor the AST.",
    ])
  })

  test(promised("words.A3", "words are hidden with their message, another session's of the same id are not"), () => {
    expect(saidIn(taskOf(first, new Set(["msg_2"])))).toEqual(["Of an earlier session.", "Mind the lexer."])
    expect(messageIDsOf(both).toSorted()).toEqual(["msg_1", "msg_2", "msg_3"])
  })

  test(promised("words.A3", "a session's words and steps of deleted messages are dropped for good"), () => {
    const left = withoutMessages(both, new Set(["msg_2", "msg_3"]))
    expect(taskOf(left)).toMatchObject({ taskID: FIRST })
    expect(saidIn(taskOf(left))).toEqual(["Of an earlier session.", "Mind the lexer."])
    expect(left.words[SECOND]?.words).toEqual([])
    expect(messageIDsOf(left)).toEqual(["msg_1"])
  })
})
