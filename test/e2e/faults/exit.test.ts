import { cpSync, existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { beforeAll, describe, expect, test } from "vitest"
import { promised } from "../../requirements.ts"
import type { CompactionFault } from "../../support/faults/fault.ts"
import { HANGING_LEDGERS, pathWithFakeProg } from "../../support/faults/fault-ledger-table.ts"
import { findProcessesOf } from "../../support/faults/fault-leftovers.ts"
import { type Records, readRecords } from "../../support/faults/fault-stored-table.ts"
import { breakClientCall } from "../../support/faults/fault-table.ts"
import {
  closeTaskProjects,
  endsOf,
  eventually,
  NEWEST,
  type OpenCodeBinary,
  openTaskProject,
  REPOSITORY,
  retentionScript,
  type TaskProject,
} from "../../support/index.ts"

closeTaskProjects()

const DEADLINES_MS = {
  "chat.message": 1_000,
  "chat.params": 1_000,
  "tool.execute.after": 1_000,
  "shell.env": 1_000,
  "experimental.session.compacting": 3_000,
  "experimental.chat.messages.transform": 3_000,
} as const
const DISPOSE_MS = 1_000
/** Delay of a timer on a busy machine. */
const LATENESS_MS = 1_500

const readHookTimes = ({ project }: TaskProject): Record<string, number> => {
  const path = join(project.home, "hook-times")
  const longest: Record<string, number> = {}
  if (!existsSync(path)) return longest
  for (const line of readFileSync(path, "utf8").trim().split("\n")) {
    const { hook, ms }: { hook: string; ms: number } = JSON.parse(line)
    longest[hook] = Math.max(ms, longest[hook] ?? 0)
  }
  return longest
}

/** Runs OpenCode with one compaction; with the bundle, prog hangs and no call of the client is answered. */
const timeRun = async (binary: OpenCodeBinary, hangingLedger?: CompactionFault) => {
  let answeredAt = 0
  const script = retentionScript(1, "careless")
  const task = await openTaskProject(
    binary,
    async (request) => {
      const reply = await script(request)
      answeredAt = performance.now()
      return reply
    },
    { bundle: hangingLedger ? "project" : "none" },
  )
  const { project } = task
  const putPlugin = (file: string, name: string) =>
    cpSync(join(REPOSITORY, "test/support/faults", file), join(project.directory, ".opencode", "plugins", name))
  if (hangingLedger) {
    putPlugin("fault-probe.ts", "compaction-handoff.ts")
    putPlugin("fault-plugin.ts", "a-fault.ts")
    await hangingLedger.arrange?.(task, 0)
    breakClientCall(task, "every call", "hangs")
  }
  const environment = hangingLedger ? { PATH: pathWithFakeProg(task), BATON_LEDGER: "real" } : {}
  const result = await task.run(task.message, { environment })
  return {
    result,
    task,
    /** From the model's last answer to OpenCode's end. */
    exitMs: performance.now() - answeredAt,
    /** The longest call of each hook of the bundle. */
    hookMs: readHookTimes(task),
  }
}

type TimedRun = Awaited<ReturnType<typeof timeRun>>

const CASES = HANGING_LEDGERS.flatMap((fault, index) => endsOf(index).map((binary) => ({ fault, binary })))

describe.each(CASES)("OpenCode $binary.version: $fault.name, and the client never answers", ({ fault, binary }) => {
  let reference: TimedRun
  let run: TimedRun
  let records: Records
  let leftovers: string[]
  beforeAll(async () => {
    reference = await timeRun(binary)
    run = await timeRun(binary, fault)
    records = await readRecords(run.task)
    const noneLeft = async () => ((await findProcessesOf(run.task.project)).length === 0 ? true : undefined)
    await eventually("the end of every process", noneLeft).catch(() => undefined)
    leftovers = await findProcessesOf(run.task.project)
  })

  test(promised("faults.F2", "no hook takes longer than its deadline"), () => {
    expect(run.result.exitCode, run.result.stderr).toBe(0)
    expect(Object.keys(run.hookMs)).toEqual(expect.arrayContaining(Object.keys(DEADLINES_MS)))
    const late = Object.entries(DEADLINES_MS).filter(([hook, ms]) => (run.hookMs[hook] ?? 0) > ms + LATENESS_MS)
    expect(late, JSON.stringify(run.hookMs)).toEqual([])
  })

  test(promised("faults.F2", "the run ends no later than a second after it would have"), () => {
    // Before 1.18 OpenCode does not wait for its plugins.
    if (binary === NEWEST) expect(run.hookMs.dispose).toBeLessThan(DISPOSE_MS + LATENESS_MS)
    else expect(run.hookMs.dispose).toBeUndefined()
    expect(run.exitMs).toBeLessThan(reference.exitMs + DISPOSE_MS + LATENESS_MS)
  })

  test(promised(["faults.F1", "faults.F2"], "the record waits in the outbox, and no process is left behind"), () => {
    expect(records).toEqual({ ledger: [], outbox: ["Compaction 1: Some work was done and it went fine."] })
    expect(leftovers).toEqual([])
  })
})
