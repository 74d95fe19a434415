import { existsSync, renameSync } from "node:fs"
import { describe, expect, test } from "vitest"
import { promised } from "../../requirements.ts"
import {
  BOTH_ENDS,
  bash,
  COMPACTING_PROMPT_TOKENS,
  closeTaskProjects,
  endsOf,
  eventually,
  LEDGER_WAIT_MS,
  NEWEST,
  newestWords,
  openTaskProject,
  type Script,
  TASK,
  type TaskProject,
} from "../../support/index.ts"
import { isTmuxHere, startTui } from "../../support/opencode/tui.ts"

closeTaskProjects()

const databaseOf = ({ project }: { project: { environment: Record<string, string> } }): string =>
  project.environment.PROG_DB ?? ""

/** Asks prog for the task on LOOK; on COMPACT-NOW the context is full then. */
const look =
  (task: () => TaskProject): Script =>
  (request) => {
    if (request.kind === "compaction") return { text: "A summary." }
    const words = newestWords(request)
    if (!words.includes("LOOK") || words.includes("[tool]")) return { text: "Noted." }
    return bash(`prog show ${task().taskID}`, words.includes("COMPACT-NOW") ? COMPACTING_PROMPT_TOKENS : undefined)
  }

describe.each(BOTH_ENDS)("OpenCode $version", (binary) => {
  test(promised("task.C2", "a ledger whose database is gone is no new one: the note says so"), async () => {
    const task: TaskProject = await openTaskProject(
      binary,
      look(() => task),
    )
    const path = databaseOf(task)
    renameSync(path, `${path}.away`)
    await task.run(`Task: ${task.taskID}\nLOOK`)
    await task.run(`Work on ${task.taskID}`)
    expect(task.model.received("turn").at(-1)?.conversation).toContain("The ledger's database is missing")
    const [first, second] = task.model.received("turn")
    expect(first?.conversation).toContain(`The ledger's database is missing: there is no ledger at ${path}`)
    expect(first?.conversation).not.toContain(TASK.specification)
    expect(second?.conversation, "the agent's own prog").toContain(
      `failed to open database ${path}: no ledger is there`,
    )
    expect(existsSync(path)).toBe(false)
    renameSync(`${path}.away`, path)
    await task.run("Go on.", { args: ["--continue"] })
    expect(task.model.received("turn").at(-1)?.conversation).toContain(TASK.specification)
  })
})

describe.each(endsOf(0))("OpenCode $version", (binary) => {
  test(promised("task.C2", "what is to be recorded while the database is gone waits for it"), async () => {
    const task: TaskProject = await openTaskProject(
      binary,
      look(() => task),
    )
    const path = databaseOf(task)
    renameSync(path, `${path}.away`)
    await task.run(`Task: ${task.taskID}\nLOOK COMPACT-NOW`)
    expect(existsSync(path)).toBe(false)
    renameSync(`${path}.away`, path)
    await task.run("Go on.", { args: ["--continue"] })
    expect(task.model.received("turn").at(-1)?.conversation).toContain(TASK.specification)
    const recorded = async () => {
      const { logs } = await task.ledger.show(task.taskID)
      return logs.find(({ message }) => message.includes("A summary."))
    }
    await eventually("the record of the compaction", recorded, ...LEDGER_WAIT_MS)
  })
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
      await tui.shows("Baton: the ledger's database is missing")
    } finally {
      await tui.stop()
    }
  })
})
