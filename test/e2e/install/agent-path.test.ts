import { describe, expect, test } from "vitest"
import { promised } from "../../requirements.ts"
import { BOTH_ENDS, bash, closeTaskProjects, openSharedTask, type SharedTask, TASK } from "../../support/index.ts"

closeTaskProjects()

describe.each(BOTH_ENDS)("OpenCode $version", (binary) => {
  test(
    promised("ledger.D4", "the agent finds prog on its PATH, without Bun, and writes to the observer's ledger"),
    async () => {
      let step = 0
      const task: SharedTask = await openSharedTask(binary, () => {
        if (step++ > 0) return { text: "Finished." }
        return bash(`command -v bun || prog show ${task.taskID} && prog log ${task.taskID} 'by the agent'`)
      })
      await task.say("There is no task line here.")
      expect(task.model.received("turn")[1]?.conversation).toContain(TASK.title)
      expect(await task.records(1)).toEqual(["by the agent"])
    },
  )
})
