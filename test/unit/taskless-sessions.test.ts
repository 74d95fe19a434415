import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { createTasklessSessions } from "../../.opencode/baton/compaction/taskless-sessions.ts"
import { parseTask } from "../../.opencode/baton/task/parse.ts"
import { promised } from "../requirements.ts"
import { assistantMessage, textPart, userMessage } from "../support/stored-messages.ts"

const said = (text: string) => [textPart(text)]

describe("a session that surely has no task", () => {
  test(promised("task.B4", "is one born here whose every message was heard and names none"), () => {
    const taskless = createTasklessSessions()
    taskless.born("ses_1", undefined)
    expect(taskless.hears("ses_1", said("Hello."))).toBe(true)
    expect(taskless.sends("ses_1", [userMessage(said("Hello."))])).toBe(true)
    // After a compaction there are user messages that nobody wrote; what was whole stays whole.
    expect(taskless.sends("ses_1", [userMessage([]), userMessage([]), userMessage([])])).toBe(true)
    expect(taskless.has("ses_1")).toBe(true)
  })

  test(promised("task.B2", "is none that was there before, such as a resumed one"), () => {
    const taskless = createTasklessSessions()
    expect(taskless.hears("ses_1", said("Hello."))).toBe(false)
    expect(taskless.sends("ses_1", [userMessage(said("Hello."))])).toBe(false)
  })

  test(promised("task.B2", "is no fork, which begins with messages that were not heard"), () => {
    const taskless = createTasklessSessions()
    taskless.born("ses_1", undefined)
    taskless.hears("ses_1", said("Go on."))
    const messages = [userMessage(said("Task: ts-b54507")), assistantMessage(), userMessage(said("Go on."))]
    expect(taskless.sends("ses_1", messages)).toBe(false)
    expect(taskless.has("ses_1")).toBe(false)
  })

  test(promised("task.B3", "is a child only when its parent is"), () => {
    const taskless = createTasklessSessions()
    taskless.born("ses_1", undefined)
    taskless.born("ses_2", "ses_1")
    taskless.born("ses_3", "ses_unknown")
    expect([taskless.has("ses_2"), taskless.has("ses_3")]).toEqual([true, false])
    taskless.hears("ses_1", said("Task: ts-b54507"))
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
        expect(taskless.hears("ses_1", said(before + task))).toBe(false)
      }),
    )
  })
})
