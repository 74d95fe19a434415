import { cpSync, mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { beforeAll, describe, expect, test } from "vitest"
import { promised } from "../../requirements.ts"
import { DAMAGES, damageState, stateFolder } from "../../support/faults/fault-stored-table.ts"
import { breakClientCall, lineWith } from "../../support/faults/fault-table.ts"
import {
  COMPACTING_PROMPT_TOKENS,
  closeTaskProjects,
  deadline,
  endsOf,
  type ModelReply,
  newestSessionID,
  openTaskProject,
  REPOSITORY,
  type RunResult,
  type Script,
} from "../../support/index.ts"

closeTaskProjects()

/** Compacts once in each run, then reports. */
const oncePerRun: Script = ({ kind, index, conversation }): ModelReply => {
  if (kind === "compaction") return { text: `Summary ${index + 1}.` }
  const last = conversation.slice(conversation.lastIndexOf("[user]"))
  if (!last.includes("COMPACT-NOW") || last.includes("[tool]")) return { text: "Noted." }
  const input = { command: "true", description: "A step" }
  return { tool: "bash", input, promptTokens: COMPACTING_PROMPT_TOKENS }
}

type DamagedRun = { result: RunResult; log: string; lastTurn: string }

describe.each(endsOf(0))("OpenCode $version", (binary) => {
  describe("stored state that cannot be used", () => {
    const runs: DamagedRun[] = []
    let records: string[]
    beforeAll(async () => {
      const task = await openTaskProject(binary, oncePerRun)
      await task.run(`${task.message}\nCOMPACT-NOW`)
      // Two at a time, one of each folder.
      for (let first = 0; first < DAMAGES.length; first += 2) {
        const linesBefore = task.project.batonLog().length
        for (const found of DAMAGES.slice(first, first + 2)) damageState(task, found)
        const result = await task.run("COMPACT-NOW", { args: ["--session", newestSessionID(task)] })
        const log = task.project.batonLog().slice(linesBefore).join("\n")
        runs.push({ result, log, lastTurn: task.model.received("turn").at(-1)?.conversation ?? "" })
      }
      records = (await task.ledger.show(task.taskID)).logs.map(({ message }) => message)
    }, deadline(300_000))

    test.each(DAMAGES)(
      promised("faults.F1", "$folder $name: ignored with a reason, and the task is known"),
      (found) => {
        const index = Math.floor(DAMAGES.indexOf(found) / 2)
        const run = runs[index]
        expect(run?.result.exitCode, run?.result.stderr).toBe(0)
        expect(run?.log).toMatch(
          lineWith("stored state is unusable and ignored", `state/${found.folder}/`, found.reason),
        )
        expect(run?.lastTurn).toMatch(/Task: ts-[0-9a-f]{6}/)
        expect(records[index + 1]).toBe(`Compaction ${index + 2}: Summary ${index + 2}.`)
        expect(records).toHaveLength(1 + DAMAGES.length / 2)
      },
    )
  })
})

describe.each(endsOf(1))("OpenCode $version", (binary) => {
  test(
    promised(
      ["faults.F1", "ledger.D2"],
      "a damaged record in the outbox is parked, and what comes after it is delivered",
    ),
    async () => {
      const task = await openTaskProject(binary, oncePerRun)
      const damaged = DAMAGES.map(({ content }, index) => ({
        name: `000000000000${index}-000000-damaged.json`,
        content,
      }))
      mkdirSync(stateFolder(task, "outbox"), { recursive: true })
      for (const { name, content } of damaged) writeFileSync(join(stateFolder(task, "outbox"), name), content)
      const result = await task.run(`${task.message}\nCOMPACT-NOW`)
      expect(result.exitCode, result.stderr).toBe(0)
      expect((await task.ledger.show(task.taskID)).logs.map(({ message }) => message)).toEqual([
        "Compaction 1: Summary 1.",
      ])
      const names = damaged.map(({ name }) => name)
      expect(readdirSync(stateFolder(task, "outbox/parked")).filter((name) => name.endsWith(".json"))).toEqual(names)
      for (const name of names) {
        expect(task.project.batonLog().join("\n")).toMatch(
          lineWith("a record cannot be delivered and is parked", name, "no outbox record of version 1"),
        )
      }
    },
  )
})

describe.each(endsOf(1))("OpenCode $version", (binary) => {
  test(
    promised(
      ["faults.F1", "compaction.C7"],
      "zod is missing in two processes in a row: the compaction is recorded once",
    ),
    async () => {
      const task = await openTaskProject(binary, oncePerRun)
      const { directory, home } = task.project
      const packages = join(directory, ".opencode/node_modules")
      renameSync(packages, join(home, "packages"))
      mkdirSync(packages)
      const first = await task.run(`${task.message}\nCOMPACT-NOW`)
      const resumed = ["--session", newestSessionID(task)]
      const second = await task.run("Go on.", { args: resumed })
      expect([first.exitCode, second.exitCode], second.stderr).toEqual([0, 0])
      expect(task.project.batonLog().join("\n")).toMatch(/zod could not be loaded/)
      expect((await task.ledger.show(task.taskID)).logs).toEqual([])
      rmSync(packages, { recursive: true })
      renameSync(join(home, "packages"), packages)
      await task.run("Go on.", { args: resumed })
      expect((await task.ledger.show(task.taskID)).logs.map(({ message }) => message)).toEqual([
        "Compaction 1: Summary 1.",
      ])
    },
  )
})

describe.each(endsOf(2))("OpenCode $version", (binary) => {
  test(
    promised(["faults.F1", "task.B2"], "session.get hangs: a session from before the bundle is found nevertheless"),
    async () => {
      const task = await openTaskProject(binary, oncePerRun)
      const { project } = task
      const plugins = join(project.directory, ".opencode", "plugins")
      renameSync(plugins, join(project.home, "no-bundle"))
      await task.run(task.message)
      renameSync(join(project.home, "no-bundle"), plugins)
      cpSync(join(REPOSITORY, "test/support/faults/fault-plugin.ts"), join(plugins, "a-fault.ts"))
      breakClientCall(task, "session.get", "hangs")
      const result = await task.run("COMPACT-NOW", { args: ["--session", newestSessionID(task)] })
      expect(result.exitCode, result.stderr).toBe(0)
      expect(project.batonLog().join("\n")).toMatch(
        lineWith("parent of the session is unknown", "session\\.get did not answer within 1000 ms"),
      )
      expect(task.model.received("turn").at(-1)?.conversation).toContain(`Task: ${task.taskID}`)
      expect((await task.ledger.show(task.taskID)).logs.map(({ message }) => message)).toEqual([
        "Compaction 1: Summary 1.",
      ])
    },
  )
})
