import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { promised } from "../../requirements.ts"
import {
  BOTH_ENDS,
  closeTaskProjects,
  eventually,
  LEDGER_WAIT_MS,
  MODEL,
  type OpenCodeBinary,
  openSharedTask,
  type SharedTask,
} from "../../support/index.ts"
import { runProgram } from "../../support/opencode/opencode-run.ts"

closeTaskProjects()

const UNKNOWN = "ts-ffffff"

const createOutboxCommand =
  ({ project }: SharedTask, binary: OpenCodeBinary) =>
  (...args: string[]) =>
    runProgram([join(project.directory, ".opencode/baton/bin/baton"), "outbox", ...args], {
      project,
      environment: { BATON_OPENCODE: binary.path },
    })

describe.each(BOTH_ENDS)("OpenCode $version", (binary) => {
  test(promised("outbox.A1", "what was recorded for an unknown task is brought to the right one"), async () => {
    const task: SharedTask = await openSharedTask(binary, ({ kind }) => ({
      text: kind === "compaction" ? "Two of five files are done." : "Noted.",
    }))
    const outbox = createOutboxCommand(task, binary)
    const session = await task.say(task.message.replace(task.taskID, UNKNOWN))
    await task.client.session.summarize({ path: { id: session }, body: MODEL })
    await task.say("Go on.", session)
    const parked = async () => {
      const { stdout } = await outbox()
      return stdout.split(`the ledger has no task ${UNKNOWN}`).length > 2 ? stdout : undefined
    }
    expect(await eventually("two parked records", parked, ...LEDGER_WAIT_MS)).toContain(`log of ${UNKNOWN}`)

    const moved = await outbox("retarget", task.taskID)
    expect(moved, moved.stdout + moved.stderr).toMatchObject({ exitCode: 0 })
    expect(moved.stdout).toMatch(/^delivered .* log of .*\ndelivered .* handoff of /)
    expect((await outbox()).stdout).toBe("No records\n")
    const { logs, description } = await task.ledger.show(task.taskID)
    expect(logs.map(({ message }) => message)).toEqual([
      `Compaction 1: Two of five files are done. (session ${session})`,
    ])
    expect(description).toContain(`# Handoff after compaction 1 (session ${session}`)
    expect(description).toContain("Two of five files are done.")
    expect(description).toMatch(/^Lines may end in CRLF\.\nKeep LF as it is\./)
  })
})
