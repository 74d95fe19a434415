import { mkdirSync, writeFileSync } from "node:fs"
import { dirname } from "node:path"
import { beforeEach, describe, expect, test, vi } from "vitest"
import type { ProcessOutcome, RunProcess } from "../../../.opencode/baton/host/process.ts"
import { accountFolder } from "../../../.opencode/baton/host/project.ts"
import { accountSettingsPath } from "../../../.opencode/baton/host/settings.ts"
import { createWaitingCommand } from "../../../.opencode/baton/live-state/on-waiting.ts"
import { promised } from "../../requirements.ts"
import { temporaryFolder } from "../../support/files/with-test.ts"
import { eventually } from "../../support/opencode/opencode-server.ts"
import { createRecordedLog } from "../../support/recorded-log.ts"

const EXITED = { kind: "exited", exitCode: 0, stdout: "", stderr: "" } as const

describe("the account's command", () => {
  beforeEach(() => void vi.stubEnv("XDG_STATE_HOME", temporaryFolder()))
  const setUp = (settings: unknown, outcome: ProcessOutcome = EXITED) => {
    const path = accountSettingsPath()
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, JSON.stringify(settings))
    const log = createRecordedLog()
    const calls: Parameters<RunProcess>[] = []
    const run: RunProcess = async (...call) => {
      calls.push(call)
      return outcome
    }
    let count = 0
    const permission = (about = {}) => ({ kind: "permission", id: `per_${++count}`, subject: "rm x\0; y", ...about })
    const waiting = [permission({ root_session_id: "ses_1", subagent: "Look around" })]
    const state = () => ({ opencode_pid: 42, extensions: { waiting, place: null } })
    const command = createWaitingCommand({ projectRoot: "/home/me/parser", state, log, run, settlingMs: 0 })
    const tell = command.look
    const said = () => eventually("a line in the log", () => log.lines[0])
    return { tell, waiting, permission, calls, log, said }
  }
  const ON = { onWaiting: ["notify", "--me"] }

  test(
    promised(
      "waiting.B2",
      "the account's command is run once for each, with its parts as JSON and as variables, and no shell",
    ),
    async () => {
      const { tell, waiting, permission, calls, log } = setUp(ON)
      tell()
      tell()
      await eventually("the first", () => calls[0])
      waiting.push(permission())
      tell()
      await eventually("the second", () => calls[1])
      const [[argv, options] = []] = calls
      expect(argv).toEqual(["notify", "--me"])
      expect(options).toMatchObject({ cwd: accountFolder(), deadlineMs: 10_000 })
      expect(JSON.parse(options?.stdin ?? "")).toMatchObject({
        project: "parser",
        subject: "rm x\0; y",
        rootSession: "ses_1",
      })
      expect(options?.env).toMatchObject({
        BATON_WAITING_KIND: "permission",
        BATON_WAITING_FOLDER: "/home/me/parser",
        BATON_WAITING_SUBJECT: "rm x; y",
        BATON_WAITING_ROOT_SESSION: "ses_1",
        BATON_WAITING_SUBAGENT: "Look around",
        BATON_WAITING_GO_TO: expect.stringContaining("opencode --session ses_1"),
      })
      expect(calls.map(([, { stdin }]) => JSON.parse(stdin ?? "").id)).toEqual(waiting.map(({ id }) => id))
      await eventually("both in the log", () => log.lines[1])
      expect(log.lines.map(({ level }) => level)).toEqual(["info", "info"])
    },
  )

  test(promised("waiting.B2", "the account's command is not run for what was answered at once"), async () => {
    const { tell, waiting, permission, calls } = setUp(ON)
    tell()
    waiting.splice(0, 1, permission())
    tell()
    await eventually("the one that still waits", () => calls[0])
    expect(calls.map(([, { stdin }]) => JSON.parse(stdin ?? "").id)).toEqual([waiting[0]?.id])
  })

  test.each<[unknown, ProcessOutcome, string]>([
    [ON, { kind: "exited", exitCode: 3, stdout: "", stderr: "no bus" }, "exit 3: no bus"],
    [ON, { kind: "timed-out", deadlineMs: 10_000 }, "timed-out"],
    [ON, { kind: "not-started", cause: "notify: ENOENT" }, "ENOENT"],
    [{ onWaiting: "notify" }, EXITED, "onWaiting was not run"],
  ])(
    promised("waiting.B2", "the account's command that fails is a line in the log: %j, %j"),
    async (settings, outcome, reason) => {
      const { tell, said } = setUp(settings, outcome)
      tell()
      const line = await said()
      expect(line).toMatchObject({ level: "warn" })
      expect(JSON.stringify(line)).toContain(reason)
    },
  )
})
