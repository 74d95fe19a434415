import { existsSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { expect, test, vi } from "vitest"
import { isAlive } from "../../../.opencode/baton/host/process-identity.ts"
import type { EndedRun } from "../../../.opencode/baton/work/ledger.ts"
import { parseWorkOptions } from "../../../.opencode/baton/work/options.ts"
import { type RunDeps, startRun } from "../../../.opencode/baton/work/run.ts"
import { promised } from "../../requirements.ts"
import { temporaryFolder } from "../../support/unit.ts"

/** Its processes are found by its id on the whole machine, where other tests run. */
const TASK = { task: `ts-${process.pid}r`, title: "First", definition_of_done: "", run: 1, earlier: [], answer: "" }

/** An agent that is killed while a shell of its own goes on. */
const KILLED = "#!/bin/sh\nsleep 600 &\necho $$ >agent.pid\nkill -9 $$\n"

/** Starts a run on a task whose agent is a script, and keeps what the ledger is told. */
const openRun = (script: string, { checks = [] as string[], status = "open" } = {}) => {
  const directory = temporaryFolder()
  const opencode = join(directory, "opencode")
  writeFileSync(opencode, script, { mode: 0o755 })
  const ended: EndedRun[] = []
  const logs: string[] = []
  const ledger: RunDeps["ledger"] = {
    show: async () => ({ dependencies: [] }) as never,
    log: async (_task, message) => {
      logs.push(message)
      return ""
    },
    endRun: async (end) => {
      ended.push(end)
      return { ...end, session: "ses_1", ended: "now", next_try: "", tokens: 0, status }
    },
  }
  const deps: RunDeps = {
    ...{ opencode, directory, ledger, options: parseWorkOptions(["--checks"]) },
    ...{ worktrees: undefined, workerID: "w", holder: "h", prompt: () => "{{task_id}}" },
    ...{ checks: new Map([[TASK.task, checks]]), isRunning: () => false, say: () => {}, nowMs: Date.now },
  }
  return { directory, ended, logs, deps }
}

test(
  promised("work.B4", "a check that a stop cuts off is ended and opens the task again, and none comes after it"),
  async () => {
    const checks = ["touch began; sleep 600", "touch second"]
    const { directory, ended, logs, deps } = openRun("#!/bin/sh\n", { checks, status: "done" })
    const run = startRun(TASK, deps)
    await vi.waitUntil(() => existsSync(join(directory, "began")), { timeout: 15_000, interval: 5 })
    await run.stop({ kind: "stopped", detail: "it was interrupted" })
    await run.ended
    expect(ended.slice(1)).toEqual([{ task: TASK.task, n: TASK.run, kind: "not checked", detail: checks[0] }])
    expect(logs).toEqual([])
    expect(existsSync(join(directory, "second"))).toBe(false)
  },
)

test(promised("work.B4", "a red check counts although its output has a NUL or cannot be logged"), async () => {
  const { ended, logs, deps } = openRun("#!/bin/sh\n", { checks: ["printf 'a\\0b'; false"], status: "done" })
  await startRun(TASK, deps).ended
  expect(ended.at(-1)).toMatchObject({ kind: "check red" })
  expect(logs.at(-1)).toMatch(/^Check red: .*\na␀b$/)
  const log = async (): Promise<string> => {
    throw new Error("database is locked")
  }
  ended.length = 0
  await startRun(TASK, { ...deps, ledger: { ...deps.ledger, log } }).ended
  expect(ended.map(({ kind }) => kind)).toContain("check red")
})

test(
  promised("work.B3", "an agent that was killed is not said to be stopped, although its claim is free"),
  async () => {
    const { directory, ended, deps } = openRun(KILLED)
    const run = startRun(TASK, deps)
    const pid = join(directory, "agent.pid")
    const isOver = () =>
      existsSync(pid) && readFileSync(pid, "utf8").endsWith("\n") && !isAlive(Number(readFileSync(pid, "utf8")))
    await vi.waitUntil(isOver, { timeout: 15_000, interval: 5 })
    await run.stop({ kind: "stopped", detail: "the task is another's" })
    expect(await run.ended).toMatchObject({ kind: "killed", detail: "its process was ended by SIGKILL" })
    expect(ended).toMatchObject([{ kind: "killed" }])
  },
)
