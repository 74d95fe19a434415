import { cpSync, existsSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { signalIfThere } from "../../../.opencode/baton/host/process.ts"
import { promised } from "../../requirements.ts"
import { SEED } from "../../support/effort.ts"
import type { CompactionFault } from "../../support/faults/fault.ts"
import { HANGING_LEDGERS, pathWithFakeProg } from "../../support/faults/fault-ledger-table.ts"
import { awaitNoProcesses } from "../../support/faults/fault-leftovers.ts"
import { readRecords, recordsIn, stateFolder } from "../../support/faults/fault-stored-table.ts"
import { breakClientCall } from "../../support/faults/fault-table.ts"
import {
  COMPACTING_STEP,
  deadline,
  endsOf,
  eventually,
  IS_NIGHT,
  type ModelReply,
  NEWEST,
  type OpenCodeBinary,
  openTaskProject,
  REPOSITORY,
  retentionScript,
  type Script,
  type TaskProject,
} from "../../support/index.ts"
import { testRandom } from "../../support/test-random.ts"
import { recordsOf, runWell } from "../sessions.ts"

const DEADLINES_MS = {
  "chat.message": 1_000,
  "chat.params": 1_000,
  "tool.execute.after": 1_000,
  "shell.env": 1_000,
  "experimental.session.compacting": 3_000,
  "experimental.chat.messages.transform": 3_000,
} as const
const DISPOSE_MS = 1_000
/** Delay of a timer, as slow as the machine is. */
const LATENESS_MS = deadline(1_500)

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
    cpSync(join(REPOSITORY, "test", file), join(project.directory, ".opencode", "plugins", name))
  if (hangingLedger) {
    putPlugin("fixtures/hook-times.ts", "compaction-handoff.ts")
    putPlugin("support/faults/fault-plugin.ts", "a-fault.ts")
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

const CASES = HANGING_LEDGERS.flatMap((fault, index) => endsOf(index).map((binary) => ({ fault, binary })))

describe.each(CASES)(
  "$binary.version: $fault.name, the client is silent",
  { timeout: deadline(120_000) },
  ({ fault, binary }) => {
    test(promised("faults.F2", "hooks and run end in time, no process is left"), async () => {
      const reference = await timeRun(binary)
      const { hookMs, exitMs, result, task } = await timeRun(binary, fault)
      expect(result.exitCode, result.stderr).toBe(0)
      expect(Object.keys(hookMs)).toEqual(expect.arrayContaining(Object.keys(DEADLINES_MS)))
      const late = Object.entries(DEADLINES_MS).filter(([hook, ms]) => (hookMs[hook] ?? 0) > ms + LATENESS_MS)
      expect(late, JSON.stringify(hookMs)).toEqual([])
      // Before 1.18 OpenCode does not wait for its plugins.
      if (binary === NEWEST) expect(hookMs.dispose).toBeLessThan(DISPOSE_MS + LATENESS_MS)
      else expect(hookMs.dispose).toBeUndefined()
      expect(exitMs).toBeLessThan(reference.exitMs + DISPOSE_MS + LATENESS_MS)

      const record = "Compaction 1: Some work was done and it went fine."
      expect(await readRecords(task)).toEqual({ ledger: [], outbox: [record] })
      expect(await awaitNoProcesses(task.project, 20_000)).toEqual([])
    })
  },
)

const KILLS = IS_NIGHT ? 8 : 1
/** Number of requests from which on a turn has followed a compaction of the run. */
const FOLLOWING_REQUESTS = 3
/** Maximum number of requests that are answered before the kill. */
const MOST_REQUESTS = 5
/** Approximate time between two requests. */
const SPREAD_MS = 700
const RECORD_DEADLINE_MS = 60_000

/** Expects that every state file is whole JSON. */
const expectWholeFiles = (task: TaskProject): void => {
  const folder = stateFolder(task, "")
  const names = readdirSync(folder, { recursive: true, encoding: "utf8" })
  for (const name of names.filter((path) => path.endsWith(".json"))) {
    const text = readFileSync(join(folder, name), "utf8")
    expect(() => JSON.parse(text), `${name}: ${text}`).not.toThrow()
  }
}

const summaryNumber = (text: string): number => Number(/Summary (\d+)\./.exec(text)?.[1])

describe.each(endsOf(SEED))("OpenCode $version", { timeout: deadline(300_000) }, (binary) => {
  test(promised("faults.F2", "kills lose no compaction that a turn followed, and double none"), async () => {
    const random = testRandom()
    const fewest = (kill: number) => (kill === 0 ? FOLLOWING_REQUESTS : 1)
    const moments = Array.from({ length: KILLS }, (_, kill) => ({
      requests: fewest(kill) + Math.floor(random() * (MOST_REQUESTS + 1 - fewest(kill))),
      delayMs: Math.round(random() * SPREAD_MS),
    }))
    /** Compactions followed by a turn: their record was on disk before the request for that turn. */
    const followed = new Set<number>()
    let requestsLeft = 0
    let endRun = (): void => {}
    let isLast = false

    const script: Script = async ({ kind, index, conversation }): Promise<ModelReply> => {
      requestsLeft -= 1
      if (requestsLeft === 0) endRun()
      if (kind === "compaction") return { text: `Summary ${index + 1}.` }
      const summary = /\[assistant\] (Summary \d+\.)/.exec(conversation)?.[1]
      if (summary) followed.add(summaryNumber(summary))
      if (isLast) {
        const isEmpty = () => recordsIn(task, "outbox").length === 0 || undefined
        await eventually("an empty outbox", isEmpty, RECORD_DEADLINE_MS)
        return { text: "Finished." }
      }
      return COMPACTING_STEP
    }
    const task: TaskProject = await openTaskProject(binary, script)
    const sessionArgs = (): string[] => {
      const folder = stateFolder(task, "tasks")
      const [file] = existsSync(folder) ? readdirSync(folder).filter((name) => name.endsWith(".json")) : []
      return file ? ["--session", file.replace(".json", "")] : []
    }

    for (const { requests, delayMs } of moments) {
      requestsLeft = requests
      const args = sessionArgs()
      const result = await task.run(args.length > 0 ? "go on" : task.message, {
        args,
        onStart: (pid) => {
          endRun = () => setTimeout(() => signalIfThere(pid, "SIGKILL"), delayMs)
        },
      })
      expect(result.signal, result.stderr).toBe("SIGKILL")
      expectWholeFiles(task)
    }
    isLast = true
    await runWell(task, "go on", { args: sessionArgs() })

    const context = `killed after ${JSON.stringify(moments)}; followed: ${[...followed].join(", ")}`
    const { description } = await task.ledger.show(task.taskID)
    const records = (await recordsOf(task)).filter((message) => !message.includes("ended in the middle of"))
    const numbers = records.map((record) => record.replace(/:.*/, ""))
    expect(numbers, context).toEqual(records.map((_, index) => `Compaction ${index + 1}`))
    const summaries = records.map(summaryNumber)
    expect(summaries, context).toEqual([...new Set(summaries)].toSorted((a, b) => a - b))
    const longRuns = moments.filter(({ requests }) => requests >= FOLLOWING_REQUESTS)
    expect(followed.size, context).toBeGreaterThanOrEqual(longRuns.length)
    expect(summaries, context).toEqual(expect.arrayContaining([...followed]))
    expect(description, context).toContain(`Handoff after compaction ${records.length} `)
    expect(await awaitNoProcesses(task.project)).toEqual([])
  })
})
