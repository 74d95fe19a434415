import { describe, expect, test } from "vitest"
import { promised } from "../../requirements.ts"
import {
  BOTH_ENDS,
  BRIEF,
  closeTaskProjects,
  measureRetention,
  openSharedTask,
  openTaskProject,
  retentionScript,
  type Summariser,
  TASK,
} from "../../support/index.ts"

closeTaskProjects()

describe.each(BOTH_ENDS)("OpenCode $version", (binary) => {
  test(
    promised(["compaction.C1", "compaction.C6", "compaction.C7"], "five compactions leave task and ledger intact"),
    async () => {
      const { model, ledger, taskID, message, run } = await openTaskProject(binary, retentionScript(5, "faithful"))
      const result = await run(message)
      expect(result.exitCode, result.stderr).toBe(0)
      expect(measureRetention(model.requests, taskID)).toEqual({ compactions: 5, factsKept: 5, turnsKnowingTask: 5 })
      const task = await ledger.show(taskID)
      expect(task.logs.map(({ message }) => message.replace(/:.*/, ""))).toEqual(
        [1, 2, 3, 4, 5].map((n) => `Compaction ${n}`),
      )
      expect(task.description.startsWith(TASK.specification)).toBe(true)
      expect(task.description.split("Handoff after compaction")).toHaveLength(2)
      expect(task.description).toContain("Handoff after compaction 5")
    },
  )

  const SUMMARISERS: Summariser[] = ["careless", "empty", "foreign"]
  test.each(SUMMARISERS)(
    promised("compaction.C6", "a %s summary still leaves an agent that knows its task"),
    async (summariser) => {
      const { model, taskID, message, say } = await openSharedTask(binary, retentionScript(2, summariser))
      await say(message)
      const afterCompaction = model.received("turn").slice(1)
      expect(afterCompaction).toHaveLength(2)
      for (const { conversation } of afterCompaction) {
        for (const known of [taskID, "Role: worker", TASK.title, TASK.definitionOfDone, BRIEF, `prog show ${taskID}`]) {
          expect(conversation).toContain(known)
        }
      }
    },
  )
})
