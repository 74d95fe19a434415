import type { Todo } from "@opencode-ai/sdk"
import { describe, expect, test } from "vitest"
import { createTodoLists } from "../../.opencode/baton/compaction/todo-lists.ts"
import type { Answer } from "../../.opencode/baton/host/sessions.ts"
import { promised } from "../requirements.ts"

const todo = (content: string): Todo => ({ id: content, content, status: "pending", priority: "medium" })

const setUp = (...answers: Answer<Todo[]>[]) => {
  let calls = 0
  const lists = createTodoLists({
    todos: async () => answers[calls++] ?? { kind: "failed", reason: "asked too often" },
  })
  return { lists, calls: () => calls }
}

describe("todo lists", () => {
  test(
    promised(["compaction.C5", "speed.G2"], "a session's todos are asked for once and then kept by events"),
    async () => {
      const { lists, calls } = setUp({ kind: "answer", value: [todo("one")] })
      await lists.find("ses_1")
      expect(await lists.find("ses_1")).toEqual({ kind: "answer", value: [todo("one")] })
      lists.updated("ses_1", [todo("two")])
      expect(await lists.find("ses_1")).toEqual({ kind: "answer", value: [todo("two")] })
      expect(calls()).toBe(1)
    },
  )

  test(promised("compaction.C5", "a failed answer is not kept"), async () => {
    const { lists } = setUp({ kind: "failed", reason: "late" }, { kind: "answer", value: [todo("one")] })
    expect(await lists.find("ses_1")).toEqual({ kind: "failed", reason: "late" })
    expect(await lists.find("ses_1")).toEqual({ kind: "answer", value: [todo("one")] })
  })

  test(promised("compaction.C5", "an event that overtakes the answer stands"), async () => {
    const { lists } = setUp({ kind: "answer", value: [todo("old")] })
    const asked = lists.find("ses_1")
    lists.updated("ses_1", [todo("new")])
    await asked
    expect(await lists.find("ses_1")).toEqual({ kind: "answer", value: [todo("new")] })
  })

  test(promised("task.B3", "a deleted session's todos are forgotten"), async () => {
    const { lists, calls } = setUp({ kind: "answer", value: [] }, { kind: "answer", value: [] })
    await lists.find("ses_1")
    lists.forget("ses_1")
    await lists.find("ses_1")
    expect(calls()).toBe(2)
  })
})
