import { expect, test } from "vitest"
import { promised } from "../../requirements.ts"
import { TASK } from "../../support/ledger/test-ledger.ts"
import { openServer2, openTask2 } from "../../support/opencode/opencode-2.ts"
import { HAS_OPENCODE_2 } from "../../support/opencode/opencode-binary.ts"

if (HAS_OPENCODE_2)
  test(
    promised("v2.B13", "a session with a task has its id and title as its own, one without has OpenCode's"),
    async () => {
      const task = await openTask2(() => ({ text: "Noted." }))
      await using server = await openServer2(task.project)
      const titleOf = async (id: string): Promise<string | undefined> =>
        ((await server.api("GET", `/session/${id}`)).data as { data: { title?: string } }).data.title
      const session = await server.say(`Task: ${task.taskID}`)
      await expect.poll(() => titleOf(session)).toBe(`${task.taskID} · ${TASK.title}`)
      expect(task.model.received("title")).toEqual([])
      const other = await server.say("What is two and two?")
      await expect.poll(() => titleOf(other)).toBe("A scripted title")
    },
  )
