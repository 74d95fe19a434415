import { existsSync, renameSync } from "node:fs"
import { describe, expect, test } from "vitest"
import { promised } from "../../requirements.ts"
import {
  bash,
  COMPACTING_PROMPT_TOKENS,
  endsOf,
  eventually,
  LEDGER_WAIT_MS,
  NEWEST,
  newestWords,
  type OpenCodeBinary,
  openTaskProject,
  type Script,
  TASK,
} from "../../support/index.ts"
import { isTmuxHere, startTui } from "../../support/opencode/tui.ts"
import { compactionsOf, lastTurn, recordsOf, turnsOf } from "../sessions.ts"

/** Asks prog for the task on LOOK; on COMPACT-NOW the context is full then. */
const look: Script = (request) => {
  if (request.kind === "compaction") return { text: "A summary." }
  const words = newestWords(request)
  const [, taskID] = /Task: (\S+)\nLOOK/.exec(words) ?? []
  if (taskID === undefined || words.includes("[tool]")) return { text: "Noted." }
  return bash(`prog show ${taskID}`, words.includes("COMPACT-NOW") ? COMPACTING_PROMPT_TOKENS : undefined)
}

/** A task whose ledger's database is away until `bringBack`. */
const openWithout = async (binary: OpenCodeBinary) => {
  const task = await openTaskProject(binary, look)
  const path = task.project.environment.PROG_DB ?? ""
  renameSync(path, `${path}.away`)
  const bringBack = (): void => {
    expect(existsSync(path)).toBe(false)
    renameSync(`${path}.away`, path)
  }
  return { ...task, path, bringBack }
}

describe.each(endsOf(1))("OpenCode $version", (binary) => {
  test(
    promised("task.C2", "a ledger whose database is gone is no new one: the note says so, and records wait"),
    async () => {
      const task = await openWithout(binary)
      await task.run(`Task: ${task.taskID}\nLOOK COMPACT-NOW`)
      await task.run(`Work on ${task.taskID}`)
      expect(lastTurn(task)).toContain("The ledger's database is missing")
      const [first] = turnsOf(task)
      expect(first).toContain(`The ledger's database is missing: there is no ledger at ${task.path}`)
      expect(first).not.toContain(TASK.specification)
      const refusal = `failed to open database ${task.path}: no ledger is there`
      expect(compactionsOf(task)[0], "the agent's own prog").toContain(refusal)
      task.bringBack()
      await task.run("Go on.", { args: ["--continue"] })
      expect(lastTurn(task)).toContain(TASK.specification)
      const recorded = async () => (await recordsOf(task)).find((message) => message.includes("A summary."))
      await eventually("the record of the compaction", recorded, ...LEDGER_WAIT_MS)
    },
  )
})

// scripts/test warns that this is left out.
describe.skipIf(!isTmuxHere())("OpenCode in a terminal", () => {
  test(promised("task.C2", "a toast tells of a missing database"), async () => {
    const task = await openWithout(NEWEST)
    const tui = await startTui(NEWEST, task.project)
    try {
      await tui.send(`Task: ${task.taskID}`)
      await tui.shows("Baton: the ledger's database is missing")
    } finally {
      await tui.stop()
    }
  })
})
