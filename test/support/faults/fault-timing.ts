import { cpSync, existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { retentionScript } from "../model/retention.ts"
import type { OpenCodeBinary } from "../opencode/opencode-binary.ts"
import type { RunResult } from "../opencode/opencode-run.ts"
import { openTaskProject, type TaskProject } from "../opencode/task-project.ts"
import type { CompactionFault } from "./fault.ts"
import { pathWithFakeProg } from "./fault-ledger-table.ts"
import { breakClientCall } from "./fault-table.ts"

export type TimedRun = {
  readonly result: RunResult
  readonly task: TaskProject
  /** The longest call of each hook of the bundle, in milliseconds. */
  readonly hookMs: Readonly<Record<string, number>>
  /** Milliseconds from the model's last answer to OpenCode's end. */
  readonly exitMs: number
}

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
export const timeRun = async (binary: OpenCodeBinary, hangingLedger?: CompactionFault): Promise<TimedRun> => {
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
    cpSync(join(import.meta.dirname, file), join(project.directory, ".opencode", "plugins", name))
  if (hangingLedger) {
    putPlugin("fault-probe.ts", "compaction-handoff.ts")
    putPlugin("fault-plugin.ts", "a-fault.ts")
    await hangingLedger.arrange?.(task, 0)
    breakClientCall(task, "every call", "hangs")
  }
  const environment = hangingLedger ? { PATH: pathWithFakeProg(task), BATON_LEDGER: "real" } : {}
  const result = await task.run(task.message, { environment })
  return { result, task, exitMs: performance.now() - answeredAt, hookMs: readHookTimes(task) }
}
