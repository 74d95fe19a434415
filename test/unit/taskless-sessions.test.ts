import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { createTasklessSessions } from "../../.opencode/baton/compaction/taskless-sessions.ts"
import { parseTask } from "../../.opencode/baton/task/parse.ts"
import { promised } from "../requirements.ts"
import { assistantMessage, textPart, userMessage } from "../support/stored-messages.ts"

const said = (text: string) => [textPart(text)]
const heard = (taskless: ReturnType<typeof createTasklessSessions>, sessionID: string, text: string, id = "msg_u") =>
  taskless.noteMessage(sessionID, { id }, said(text))

describe("a session that surely has no task", () => {
  test(promised("task.B4", "is one born here whose every message was heard and names none"), () => {
    const taskless = createTasklessSessions()
    taskless.born("ses_1", undefined)
    expect(heard(taskless, "ses_1", "Hello.")).toBe(true)
    expect(taskless.checkFirstRequest("ses_1", [userMessage(said("Hello."))])).toBe(true)
    // After a compaction there are user messages that nobody wrote; what was whole stays whole.
    expect(taskless.checkFirstRequest("ses_1", [userMessage([]), userMessage([]), userMessage([])])).toBe(true)
    expect([taskless.has("ses_1"), taskless.isCertain("ses_1")]).toEqual([true, true])
  })

  test(promised("task.B2", "is none that was there before, such as a resumed one"), () => {
    const taskless = createTasklessSessions()
    expect(heard(taskless, "ses_1", "Hello.")).toBe(false)
    expect(taskless.checkFirstRequest("ses_1", [userMessage(said("Hello."))])).toBe(false)
  })

  test(promised("task.B2", "is no fork, which begins with messages that were not heard"), () => {
    const taskless = createTasklessSessions()
    taskless.born("ses_1", undefined)
    heard(taskless, "ses_1", "Go on.")
    const messages = [userMessage(said("Task: ts-b54507"), "msg_old"), assistantMessage(), userMessage(said("Go on."))]
    expect(taskless.checkFirstRequest("ses_1", messages)).toBe(false)
    expect(taskless.has("ses_1")).toBe(false)
  })

  test(promised("task.B2", "is no fork whose older messages alone are on their way to a summariser"), () => {
    const taskless = createTasklessSessions()
    taskless.born("ses_1", undefined)
    heard(taskless, "ses_1", "Go on.")
    expect(taskless.isCertain("ses_1")).toBe(false)
    expect(taskless.checkFirstRequest("ses_1", [userMessage(said("Task: ts-b54507"), "msg_old")])).toBe(false)
  })

  test("are bounded: the oldest is looked up like any other again", () => {
    const taskless = createTasklessSessions()
    for (let at = 0; at <= 1_000; at++) taskless.born(`ses_${at}`, undefined)
    expect([taskless.has("ses_0"), taskless.has("ses_1"), taskless.has("ses_1000")]).toEqual([false, true, true])
  })

  test(promised("task.B3", "is a child only when its parent is"), () => {
    const taskless = createTasklessSessions()
    taskless.born("ses_1", undefined)
    taskless.born("ses_2", "ses_1")
    taskless.born("ses_3", "ses_unknown")
    expect([taskless.has("ses_2"), taskless.has("ses_3")]).toEqual([true, false])
    heard(taskless, "ses_1", "Task: ts-b54507")
    taskless.born("ses_4", "ses_1")
    expect(taskless.has("ses_4")).toBe(false)
  })

  test(promised("task.B1", "is none as soon as a text names a task, in whatever form the parser takes"), () => {
    const id = fc.tuple(fc.constantFrom("ts-", "EP-", "abc-"), fc.stringMatching(/^[0-9a-f]{3,11}[0-9]$/))
    const line = id.map(([prefix, hex]) => `Task: ${prefix}${hex}`)
    fc.assert(
      fc.property(fc.constantFrom("", "\uFEFF", '"', "a\r\n", "```\n"), line, (before, task) => {
        fc.pre(parseTask(before + task) !== undefined)
        const taskless = createTasklessSessions()
        taskless.born("ses_1", undefined)
        expect(heard(taskless, "ses_1", before + task)).toBe(false)
      }),
    )
  })
})
