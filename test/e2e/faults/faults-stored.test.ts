import { cpSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { promised } from "../../requirements.ts"
import { withoutPackages } from "../../support/faults/fault-machine-table.ts"
import { DAMAGES, damageState, recordsIn, stateFolder } from "../../support/faults/fault-stored-table.ts"
import { breakClientCall, lineWith } from "../../support/faults/fault-table.ts"
import { makeOwnFolder } from "../../support/files/own-state.ts"
import {
  BOTH_ENDS,
  deadline,
  endsOf,
  IS_NIGHT,
  newestSessionID,
  openTaskProject,
  type TaskProject,
} from "../../support/index.ts"
import { REPOSITORY } from "../../support/opencode/opencode-binary.ts"
import { afterDelivery, compactsOnDemand, lastTurn, recordsOf, runWell, withoutPlugins } from "../sessions.ts"

/** Two at a time, one of each folder. */
const PAIRS = [DAMAGES.slice(0, 2), DAMAGES.slice(2)]

describe.each(endsOf(0))("OpenCode $version", { timeout: deadline(300_000) }, (binary) => {
  test(promised(["faults.F1", "ledger.D2"], "damaged state and records are named, the task is known"), async () => {
    const script = afterDelivery(() => task, compactsOnDemand)
    const task: TaskProject = await openTaskProject(binary, script)
    makeOwnFolder(task.project, "outbox")
    const names = DAMAGES.map((_, index) => `000000000000${index}-000000-damaged.json`)
    for (const [index, { content }] of DAMAGES.entries())
      writeFileSync(join(stateFolder(task, "outbox"), names[index] ?? ""), content)
    await runWell(task, `${task.message}\nCOMPACT-NOW`)
    expect(await recordsOf(task), "what comes after them is delivered").toEqual(["Compaction 1: Summary 1."])
    expect(recordsIn(task, "outbox/parked")).toEqual(names)
    const first = task.project.batonLog().join("\n")
    for (const name of names)
      expect(first).toMatch(lineWith("a record cannot be delivered and is parked", name, "no outbox record of version"))
    for (const pair of PAIRS) {
      const linesBefore = task.project.batonLog().length
      for (const found of pair) damageState(task, found)
      await runWell(task, "COMPACT-NOW", { args: ["--session", newestSessionID(task)] })
      const log = task.project.batonLog().slice(linesBefore).join("\n")
      for (const { folder, reason } of pair)
        expect(log).toMatch(lineWith("stored state is unusable and ignored", `state/${folder}/`, reason))
      expect(lastTurn(task)).toContain(`Task: ${task.taskID}`)
    }
    expect(await recordsOf(task)).toEqual([1, 2, 3].map((number) => `Compaction ${number}: Summary ${number}.`))
  })

  test(promised("faults.F1", "session.get hangs: a session from before the bundle is found"), async () => {
    const script = afterDelivery(() => task, compactsOnDemand)
    const task: TaskProject = await openTaskProject(binary, script)
    const { project } = task
    await withoutPlugins(task, () => task.run(task.message))
    const plugin = join(project.directory, ".opencode/plugins/a-fault.ts")
    cpSync(join(REPOSITORY, "test/support/faults/fault-plugin.ts"), plugin)
    breakClientCall(task, "session.get", "hangs")
    await runWell(task, "COMPACT-NOW", { args: ["--session", newestSessionID(task)] })
    const line = lineWith("parent of the session is unknown", "session\\.get did not answer within 1000 ms")
    expect(project.batonLog().join("\n")).toMatch(line)
    expect(lastTurn(task)).toContain(`Task: ${task.taskID}`)
    expect(await recordsOf(task)).toEqual(["Compaction 1: Summary 1."])
  })
})

// By day "the plugin package is missing" in one process is enough.
describe.each(IS_NIGHT ? BOTH_ENDS : [])("OpenCode $version", (binary) => {
  test(promised("faults.F1", "zod is missing in two processes: the record comes once"), async () => {
    const task = await openTaskProject(binary, compactsOnDemand)
    withoutPackages.arrange(task)
    await runWell(task, `${task.message}\nCOMPACT-NOW`)
    const resumed = { args: ["--session", newestSessionID(task)] }
    await runWell(task, "Go on.", resumed)
    expect(task.project.batonLog().join("\n")).toMatch(/zod is not installed/)
    expect(await recordsOf(task)).toEqual([])
    withoutPackages.lift(task)
    await runWell(task, "Go on.", resumed)
    expect(await recordsOf(task)).toEqual(["Compaction 1: Summary 1."])
  })
})
