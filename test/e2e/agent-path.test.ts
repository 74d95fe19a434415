import { describe, expect, test } from "vitest"
import { promised } from "../requirements.ts"
import { BOTH_ENDS } from "../support/opencode-binary.ts"
import { closeTaskProjects, openTaskProject, TASK, type TaskProject } from "../support/task-project.ts"

closeTaskProjects()

describe.each(BOTH_ENDS)("OpenCode $version", (binary) => {
  test(
    promised("ledger.D4", "the agent finds prog on its PATH, without Bun, and writes to the observer's ledger"),
    async () => {
      let step = 0
      const task: TaskProject = await openTaskProject(binary, () => {
        if (step++ > 0) return { text: "Finished." }
        const command = `command -v bun || prog show ${task.taskID} && prog log ${task.taskID} 'by the agent'`
        return { tool: "bash", input: { command, description: "Look at the task" } }
      })
      const result = await task.run("There is no task line here.")
      expect(result.exitCode, result.stderr).toBe(0)
      expect(task.model.received("turn")[1]?.conversation).toContain(TASK.title)
      expect((await task.ledger.show(task.taskID)).logs.map(({ message }) => message)).toEqual(["by the agent"])
    },
  )
})
