import { cpSync, mkdirSync } from "node:fs"
import { join } from "node:path"
import { beforeEach, describe, expect, test } from "vitest"
import { sessionStateSchema } from "../../../.opencode/baton/compaction/session-state.ts"
import { createHandoffRecords } from "../../../.opencode/baton/handoff/records.ts"
import { stateRoot } from "../../../.opencode/baton/host/project.ts"
import { createJsonStore, createStateFolder } from "../../../.opencode/baton/host/state.ts"
import { markState, STATE_FORMAT } from "../../../.opencode/baton/host/state-mark.ts"
import { createSessionRecords } from "../../../.opencode/baton/learning/records.ts"
import { createOutboxStore } from "../../../.opencode/baton/ledger/outbox-store.ts"
import { createTaskStore } from "../../../.opencode/baton/task/session-task.ts"
import { promised } from "../../requirements.ts"
import { REPOSITORY } from "../../support/opencode/opencode-binary.ts"
import { connectSandboxes, createRepository, passPlace, readIn, succeed } from "../../support/opencode/pass-project.ts"
import { createRecordedLog } from "../../support/recorded-log.ts"

const SESSION = "ses_df026b492ffeRnJfnoAA4CFN1O"
const TASK = "ts-b54507"

/** Stored by Baton in such a project; it stays as it is as long as the format has this number. */
describe(`the state of format ${STATE_FORMAT}`, () => {
  let root: string
  let deps: { state: ReturnType<typeof createStateFolder>; log: ReturnType<typeof createRecordedLog> }

  beforeEach(() => {
    root = createRepository({ "a.txt": "one\ntwo\nthree\n" })
    const stored = join(REPOSITORY, `test/fixtures/state-format-${STATE_FORMAT}`)
    cpSync(stored, stateRoot(root), { recursive: true })
    markState(stateRoot(root))
    deps = { state: createStateFolder(root), log: createRecordedLog() }
  })

  test.each<[string, () => Promise<unknown>, object]>([
    [
      "a session's task",
      () => createTaskStore(deps).read(SESSION),
      { steps: [{ taskID: TASK, role: "worker" }], words: { [TASK]: { words: [{ text: "Mind the lexer." }] } } },
    ],
    [
      "its compactions",
      () => createJsonStore({ ...deps, folder: "compactions", schema: sessionStateSchema }).read(SESSION),
      {
        count: 1,
        lastHandoff: { taskID: TASK, text: expect.stringContaining("CRLF test") },
        note: { role: "worker" },
        opening: { isComplete: true },
        specification: { text: "Build the parser." },
        activity: { failures: [{ command: "npm test", exitCode: 1 }] },
      },
    ],
    ["a handoff", () => createHandoffRecords(deps).list(), [{ taskID: TASK, arrivals: [{ sessionID: "ses_2" }] }]],
    [
      "a correction that waits",
      () => createSessionRecords({ ...deps, pid: 1 }).waiting(),
      [{ sessionID: SESSION, sayings: [{ sentence: "No, always use tabs.", state: "waiting" }], given: [{}] }],
    ],
    [
      "records for the ledger",
      async () => {
        const store = createOutboxStore(deps.state)
        return Promise.all((await store.list()).map(store.read))
      },
      ["log", "handoff", "learning", "retire", "withdraw"].map((kind) => ({ record: { entry: { kind } } })),
    ],
  ])(promised("trust.A5", "state of this format has %s"), async (_what, read, stored) => {
    expect(await read()).toMatchObject(stored)
    expect(deps.log.lines).toEqual([])
  })

  test(promised("trust.A5", "state of this format has a pass, whose changes are applied"), async () => {
    // Git keeps no empty folder.
    mkdirSync(passPlace(root, "p1", "files", "store", "refs"), { recursive: true })
    const passes = connectSandboxes(root)
    expect(await passes.pending()).toMatchObject([{ state: "stored" }])
    expect(succeed(await passes.apply("p1"))).toMatchObject({ complete: true, held: 0 })
    expect([readIn(root, "a.txt"), readIn(root, "new.txt")]).toEqual(["one\ntwo\nTHREE\n", "n\n"])
  })
})
