import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { promised } from "../../requirements.ts"
import { eventually, LEDGER_WAIT_MS, linesOf, openSharedTask, type SharedTask } from "../../support/index.ts"
import { databaseOf } from "../../support/ledger/ledger-process.ts"
import { runSql } from "../../support/ledger/ledger-rows.ts"
import { runProgram } from "../../support/opencode/opencode-run.ts"
import { compact } from "../sessions.ts"

const UNKNOWN = "ts-ffffff"

describe.each(linesOf(1))("OpenCode $version", (binary) => {
  test(
    promised("outbox.A1", "what was recorded for an unknown task waits, and comes once the ledger knows it"),
    async () => {
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

      const tried = await outbox("retry")
      expect(tried.exitCode).toBe(1)
      expect(tried.stdout).toContain(`the ledger has no task ${UNKNOWN}`)
      runSql(databaseOf(task.project.home), [`UPDATE items SET id = '${UNKNOWN}' WHERE id = '${task.taskID}'`])
      const moved = await outbox("retry")
      expect(moved, moved.stdout + moved.stderr).toMatchObject({ exitCode: 0 })
      expect(moved.stdout).toMatch(/delivered .* log of .*\ndelivered .* handoff of /)
      expect((await outbox()).stdout).toBe("No records\n")
      const { description } = await task.ledger.show(UNKNOWN)
      expect(description).toContain(`# Handoff after compaction 1 (session ${session}`)
      expect(await task.ledger.messages(UNKNOWN)).toContainEqual(
        expect.stringContaining("Compaction 1: Two of five files are done."),
      )
    },
  )
})
