import { existsSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { expect, test, vi } from "vitest"
import { isAlive } from "../../../.opencode/baton/host/process-identity.ts"
import type { EndedRun } from "../../../.opencode/baton/work/ledger.ts"
import { parseWorkOptions } from "../../../.opencode/baton/work/options.ts"
import { type RunDeps, startRun } from "../../../.opencode/baton/work/run.ts"
import { promised } from "../../requirements.ts"
import { temporaryFolder } from "../../support/unit.ts"

const TASK = { task: "ts-000001", title: "First", definition_of_done: "", run: 1, earlier: [], answer: "" }

/** An agent that is killed while a shell of its own goes on. */
const KILLED = "#!/bin/sh\nsleep 600 &\necho $$ >agent.pid\nkill -9 $$\n"

test(
  promised("work.B3", "an agent that was killed is not said to be stopped, although its claim is free"),
  async () => {
    const directory = temporaryFolder()
    const opencode = join(directory, "opencode")
    writeFileSync(opencode, KILLED, { mode: 0o755 })
    const ended: EndedRun[] = []
    const ledger: RunDeps["ledger"] = {
      show: async () => ({ dependencies: [] }) as never,
      log: async () => undefined as never,
      endRun: async (end) => {
        ended.push(end)
        return undefined
      },
    }
    const run = startRun(TASK, {
      ...{ opencode, directory, ledger, options: parseWorkOptions([]) },
      ...{ worktrees: undefined, workerID: "w", holder: "h", prompt: () => "{{task_id}}", checks: new Map() },
      ...{ isRunning: () => false, say: () => {}, nowMs: Date.now },
    })
    const pid = join(directory, "agent.pid")
    const isOver = () =>
      existsSync(pid) && readFileSync(pid, "utf8").endsWith("\n") && !isAlive(Number(readFileSync(pid, "utf8")))
    await vi.waitUntil(isOver, { timeout: 15_000, interval: 5 })
    await run.stop({ kind: "stopped", detail: "the task is another's" })
    expect(await run.ended).toMatchObject({ kind: "killed", detail: "its process was ended by SIGKILL" })
    expect(ended).toMatchObject([{ kind: "killed" }])
  },
)
