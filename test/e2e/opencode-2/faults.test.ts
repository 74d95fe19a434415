import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { promised } from "../../requirements.ts"
import type { CompactionFault } from "../../support/faults/fault.ts"
import { describeFaults } from "../../support/faults/fault-assertions.ts"
import { CLAIM_FAULTS } from "../../support/faults/fault-claim-table.ts"
import {
  FOREIGN_PROG,
  HANGING_LEDGERS,
  LEDGER_FAULTS,
  pathWithFakeProg,
} from "../../support/faults/fault-ledger-table.ts"
import { awaitNoProcesses } from "../../support/faults/fault-leftovers.ts"
import { MACHINE_FAULTS } from "../../support/faults/fault-machine-table.ts"
import { DAMAGES, damageState, recordsIn, stateFolder } from "../../support/faults/fault-stored-table.ts"
import { HELD_TO_MODES, lineWith, PROJECT_FAULTS } from "../../support/faults/fault-table.ts"
import { makeOwnFolder } from "../../support/files/own-state.ts"
import { deadline, eventually, IS_NIGHT, REPOSITORY, type Script, TASK, type TaskProject } from "../../support/index.ts"
import { inForm } from "../../support/model/retention-2.ts"
import { FULL_TOKENS, openTask2, type Task2 } from "../../support/opencode/opencode-2.ts"
import { LINE_2 } from "../../support/opencode/opencode-binary.ts"
import { afterDelivery, untilDelivered } from "../sessions.ts"

const LEFTOVER_DEADLINE_MS = 20_000

/** The log is a folder, so that no line of Baton's can be written. */
const LOG_FAULT: CompactionFault = {
  name: "baton.log cannot be written",
  when: "any",
  arrange: ({ project }) => {
    const path = logOf(project)
    rmSync(path, { force: true })
    mkdirSync(path, { recursive: true })
  },
  lift: ({ project }) => rmSync(logOf(project), { recursive: true }),
}

const logOf = ({ environment }: TaskProject["project"]): string =>
  join(environment.XDG_DATA_HOME ?? "", "opencode", "log", "baton.log")

const OF_THE_PROJECT = [...PROJECT_FAULTS.filter(({ isOf1 }) => !isOf1), LOG_FAULT]
const OF_THE_MACHINE = [
  ...MACHINE_FAULTS.filter(({ isOf1 }) => !isOf1),
  FOREIGN_PROG,
  // By day without what test/contract/ledger/claims.test.ts holds.
  ...(IS_NIGHT ? CLAIM_FAULTS : CLAIM_FAULTS.slice(0, 2)),
]

describe.each(LINE_2)("OpenCode $version", (binary) => {
  describeFaults("faults of prompts, state folder and log", binary, OF_THE_PROJECT, { launcher: HELD_TO_MODES })

  const environment = (task: TaskProject) => ({ PATH: pathWithFakeProg(task), BATON_LEDGER: "real" })
  describeFaults("faults of the ledger", binary, LEDGER_FAULTS, { environment })
  // The first call that hangs may be any of them.
  const expectedLog = lineWith("the ledger timed out: no calls for a while")
  const onWrites = HANGING_LEDGERS.slice(1).map((fault) => ({ ...fault, expectedLog }))
  describeFaults("a ledger that hangs on writes", binary, onWrites, { environment })

  for (const fault of OF_THE_MACHINE) describeFaults(fault.name, binary, [fault], fault.options)

  test(
    promised(["faults.F1", "ledger.D2"], "damaged state and records are named, the task is known"),
    async () => {
      const full = { text: "Half of it.", promptTokens: FULL_TOKENS }
      const script: Script = (request) =>
        request.kind === "compaction" ? { text: inForm(request, `- Summary ${request.index + 1}.`) } : full
      const task: Task2 = await openTask2(afterDelivery(() => task, script))
      makeOwnFolder(task.project, "outbox")
      const names = DAMAGES.map((_, index) => `000000000000${index}-000000-damaged.json`)
      for (const [index, { content }] of DAMAGES.entries())
        writeFileSync(join(stateFolder(task, "outbox"), names[index] ?? ""), content)
      await task.runWell(task.message)
      const first = task.project.batonLog().join("\n")
      for (const name of names)
        expect(first).toMatch(
          lineWith("a record cannot be delivered and is parked", name, "no outbox record of version"),
        )
      expect(recordsIn(task, "outbox/parked")).toEqual(names)
      // OpenCode 2 shows plugins nothing from before a compaction, which keeps the task.
      for (const pair of [DAMAGES.slice(0, 2), DAMAGES.slice(2)]) {
        // A process that still ends would store its state over the damage.
        expect(await awaitNoProcesses(task.project, LEFTOVER_DEADLINE_MS)).toEqual([])
        const linesBefore = task.project.batonLog().length
        for (const found of pair) damageState(task, found)
        // Compacts, since the answer before it filled the context.
        await task.runWell("go on", "-c")
        const log = task.project.batonLog().slice(linesBefore).join("\n")
        for (const { folder, reason } of pair)
          expect(log).toMatch(lineWith("stored state is unusable and ignored", `state/${folder}/`, reason))
        expect(task.model.received("turn").at(-1)?.conversation).toContain(`Task: ${task.taskID}`)
      }
      expect(await task.ledger.messages(task.taskID)).toEqual([1, 2].map((row) => `Compaction ${row}: Summary ${row}.`))
    },
    deadline(300_000),
  )

  test(
    promised(["faults.F2", "start.A6"], "after a compaction and a kill -9 the next run goes on"),
    async () => {
      let pid = 0
      const task: Task2 = await openTask2(async ({ kind, index }) => {
        if (kind === "compaction") return { text: "## Done\n\n- The lexer was left alone." }
        // A request waits for its record, but not long.
        const recorded = () => task.project.batonLog().some((line) => line.includes("compaction recorded")) || undefined
        if (index === 1) {
          await eventually("the record", recorded)
          process.kill(pid, "SIGKILL")
        } else await untilDelivered(task)
        return index === 0
          ? { tool: "shell", input: { command: "true", description: "A step" }, promptTokens: FULL_TOKENS }
          : { text: "Going on." }
      })
      const onStart = (started: number) => {
        pid = started
      }
      const killed = await task.run(task.message, { onStart })
      expect(killed.signal).toBe("SIGKILL")
      expect(await awaitNoProcesses(task.project, LEFTOVER_DEADLINE_MS)).toEqual([])
      await task.runWell(`Task: ${task.taskID}\n`)
      const { conversation = "" } = task.model.received("turn").at(-1) ?? {}
      for (const part of [TASK.title, TASK.definitionOfDone, "The lexer was left alone."])
        expect(conversation).toContain(part)
      expect(await task.ledger.messages(task.taskID)).toEqual(["Compaction 1: The lexer was left alone."])
    },
    deadline(300_000),
  )
})

test(promised("faults.F1", "docs/faults.md says of each row what is seen on 2.0.15"), () => {
  const rows =
    readFileSync(join(REPOSITORY, "docs/faults.md"), "utf8").split("\n| --- ").at(1)?.split("\n\n").at(0) ?? ""
  const cells = rows
    .split("\n")
    .slice(1)
    .map((row) => row.replace(/\|$/, "").split("|").at(-1)?.trim())
  expect(cells.length).toBeGreaterThan(20)
  expect(cells.filter((cell) => !cell || !/^(?:the same|not )/.test(cell))).toEqual([])
})
