import { existsSync, renameSync } from "node:fs"
import { describe, expect, test } from "vitest"
import { promised } from "../../requirements.ts"
import { BOTH_ENDS, bash, closeTaskProjects, NEWEST, newestWords, openTaskProject, TASK } from "../../support/index.ts"
import { isTmuxHere, startTui } from "../../support/opencode/tui.ts"

closeTaskProjects()

const databaseOf = ({ project }: { project: { environment: Record<string, string> } }): string =>
  project.environment.PROG_DB ?? ""

describe.each(BOTH_ENDS)("OpenCode $version", (binary) => {
  test(
    promised("task.C2", "a ledger whose database is gone is not a new one: the note says so until it is back"),
    async () => {
      const task = await openTaskProject(binary, (request) =>
        newestWords(request).includes("[tool]") ? { text: "Noted." } : bash(`prog show ${task.taskID}`),
      )
      const path = databaseOf(task)
      await task.run(task.message)
      renameSync(path, `${path}.away`)
      await task.run(`Task: ${task.taskID}`)
      const [first, second] = task.model.received("turn").slice(-2)
      expect(first?.conversation).toContain(`The ledger's database is missing: there is no ledger at ${path}`)
      expect(first?.conversation).not.toContain(TASK.specification)
      expect(second?.conversation, "the agent's own prog").toContain(
        `failed to open database ${path}: no ledger is there`,
      )
      expect(existsSync(path)).toBe(false)
      renameSync(`${path}.away`, path)
      await task.run("Go on.", { args: ["--continue"] })
      expect(task.model.received("turn").at(-1)?.conversation).toContain(TASK.specification)
    },
  )
})

// scripts/test warns that this is left out.
describe.skipIf(!isTmuxHere())("OpenCode in a terminal", () => {
  test(promised("task.C2", "a toast tells of a missing database"), async () => {
    const task = await openTaskProject(NEWEST, () => ({ text: "Noted." }))
    const path = databaseOf(task)
    renameSync(path, `${path}.away`)
    const tui = await startTui(NEWEST, task.project)
    try {
      await tui.send(`Task: ${task.taskID}`)
      await tui.shows("The ledger's database is missing")
    } finally {
      await tui.stop()
    }
  })
})
