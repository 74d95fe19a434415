import { cpSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { sessionStateSchema } from "../../../.opencode/baton/compaction/session-state.ts"
import { createHandoffRecords } from "../../../.opencode/baton/handoff/records.ts"
import { createJsonStore, createStateFolder } from "../../../.opencode/baton/host/state.ts"
import { createSessionRecords } from "../../../.opencode/baton/learning/records.ts"
import { createOutbox } from "../../../.opencode/baton/ledger/outbox.ts"
import { createSessionTasks } from "../../../.opencode/baton/task/registry.ts"
import { promised } from "../../requirements.ts"
import { temporaryFolder } from "../../support/files/temporary-folder.ts"
import { createScriptedLedger } from "../../support/ledger/scripted-ledger.ts"
import { REPOSITORY } from "../../support/opencode/opencode-binary.ts"
import { createRecordedLog } from "../../support/recorded-log.ts"

const SESSION = "ses_df026b492ffeRnJfnoAA4CFN1O"
const TASK = "ts-8100dc"

/** A project in which Baton 0.1.0 ran without a ledger before the upgrade. */
const open = () => {
  const root = temporaryFolder()
  cpSync(join(REPOSITORY, "test/fixtures/state-0.1.0"), join(root, ".opencode/state"), { recursive: true })
  return { state: createStateFolder(root), log: createRecordedLog() }
}

type Deps = ReturnType<typeof open>

const KEPT: readonly (readonly [what: string, read: (deps: Deps) => Promise<unknown>, kept: object])[] = [
  [
    "a session's task is known, with the protocol that it always had",
    (deps) => createSessionTasks(deps).read(SESSION),
    { taskID: TASK, role: "worker", hasRoleHeading: true, brief: expect.stringContaining("Never touch the lexer") },
  ],
  [
    "its compactions go on being counted, with the handoff and the note they had",
    (deps) => createJsonStore({ ...deps, folder: "compactions", schema: sessionStateSchema }).read(SESSION),
    {
      count: 1,
      lastHandoff: { text: "## Done\n- The lexer was read.\n\n## Next\n- Write the CRLF test." },
      note: { taskID: TASK },
      activity: { files: [{ path: "src/parser.ts", changes: 1 }], failures: [{ command: "false", exitCode: 1 }] },
    },
  ],
  [
    "its handoff is known, with the session that goes on",
    (deps) => createHandoffRecords(deps).list(),
    [{ from: SESSION, goal: "Write the CRLF test.", taskID: TASK, arrivals: [{ sessionID: expect.any(String) }] }],
  ],
  [
    "a correction that did not reach the outbox still waits",
    (deps) => createSessionRecords({ ...deps, pid: 1 }).waiting(),
    [{ sessionID: SESSION, sayings: [{ sentence: "No, always use tabs.", state: "waiting" }], given: [{}] }],
  ],
]

describe("the state that 0.1.0 left", () => {
  test.each(KEPT)(promised("install.E1", "%s"), async (_what, read, kept) => {
    const deps = open()
    expect(await read(deps)).toMatchObject(kept)
    expect(deps.log.lines).toEqual([])
  })

  test(promised(["install.E1", "ledger.D2"], "records that wait are delivered, in order"), async () => {
    const { state, log } = open()
    const { ledger, task: taskOf } = createScriptedLedger([TASK])
    const outbox = createOutbox({ ledger, state, log, now: () => new Date("2026-12-01T00:00:00Z") })
    await outbox.drain()
    outbox.stop()
    const task = taskOf(TASK)
    expect(task.messages).toEqual(["Compaction 1: The lexer was read."])
    expect(task.description).toContain(`# Handoff after compaction 1 (session ${SESSION}`)
    expect(await outbox.pending(TASK)).toEqual([])
  })
})
