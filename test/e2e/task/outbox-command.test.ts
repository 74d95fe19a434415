import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { promised } from "../../requirements.ts"
import { endsOf, eventually, LEDGER_WAIT_MS, openSharedTask, type SharedTask } from "../../support/index.ts"
import { runProgram } from "../../support/opencode/opencode-run.ts"
import { compact, recordsOf } from "../sessions.ts"

const UNKNOWN = "ts-ffffff"

describe.each(endsOf(1))("OpenCode $version", (binary) => {
  test(promised("outbox.A1", "what was recorded for an unknown task is brought to the right one"), async () => {
    const task: SharedTask = await openSharedTask(binary, ({ kind }) => ({
      text: kind === "compaction" ? "Two of five files are done." : "Noted.",
    }))
    const options = { project: task.project, environment: { BATON_OPENCODE: binary.path } }
    const command = join(task.project.directory, ".opencode/baton/bin/baton")
    const outbox = (...args: string[]) => runProgram([command, "outbox", ...args], options)
    const session = await task.say(task.message.replace(task.taskID, UNKNOWN))
    await compact(task, session)
    await task.say("Go on.", session)
    const parked = async () => {
      const { stdout } = await outbox()
      return stdout.split(`the ledger has no task ${UNKNOWN}`).length > 2 ? stdout : undefined
    }
    expect(await eventually("two parked records", parked, ...LEDGER_WAIT_MS)).toContain(`log of ${UNKNOWN}`)

    const moved = await outbox("retarget", task.taskID)
    expect(moved, moved.stdout + moved.stderr).toMatchObject({ exitCode: 0 })
    expect(moved.stdout).toMatch(/delivered .* log of .*\ndelivered .* handoff of /)
    expect((await outbox()).stdout).toBe("No records\n")
    expect(await recordsOf(task)).toEqual(["Compaction 1: Two of five files are done."])
    const { description } = await task.ledger.show(task.taskID)
    expect(description).toContain(`# Handoff after compaction 1 (session ${session}`)
    expect(description).toContain("Two of five files are done.")
    expect(description).toMatch(/^Lines may end in CRLF\.\nKeep LF as it is\./)
  })
})
