import { cpSync, existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { COMPACTING_PROMPT_TOKENS } from "../model/retention.ts"
import type { ModelReply, RequestKind, Script } from "../model/scripted-model.ts"
import { type OpenCodeBinary, REPOSITORY } from "../opencode/opencode-binary.ts"
import { type RunResult, runProgram } from "../opencode/opencode-run.ts"
import { eventually } from "../opencode/opencode-server.ts"
import { newestSessionID, openTaskProject, type TaskProject } from "../opencode/task-project.ts"
import type { ProjectOptions } from "../opencode/test-project.ts"
import type { CompactionFault, FaultyRunOptions } from "./fault.ts"
import { awaitNoProcesses, snapshotOutside } from "./fault-leftovers.ts"
import { recordsIn, stateFolder } from "./fault-stored-table.ts"

/** Log entries of compactions, by place. */
export type Records = { readonly ledger: string[]; readonly outbox: string[] }

/** The end of a run as its user sees it, and the kinds of requests to the model. */
export type Ending = Pick<RunResult, "exitCode" | "signal" | "stdout" | "stderr"> & { requests: RequestKind[] }

/** Observations while one fault was active. */
type FaultStep = {
  /** Lines logged by Baton. */
  readonly log: string
  /** Number of broken client calls. */
  readonly brokenCalls: number
  /** The turn after the compaction was told the task. */
  readonly knewTask: boolean
}

const DELIVERY_DEADLINE_MS = 30_000
const RUN_DEADLINE_MS = 200_000
const LOG_DEADLINE_MS = 10_000
/** After OpenCode has ended, its own `timeout` ends a program that hangs. */
const LEFTOVER_DEADLINE_MS = 20_000

const summaryUnder = (name: string): string => `Compacted under: ${name}.`
const SUMMARY = /Compacted under: .*\./g

/** The log entry of the compaction during the fault at `index`. */
export const recordOf = ({ name }: CompactionFault, index: number): string =>
  `Compaction ${index + 1}: ${summaryUnder(name)}`

const waitingMessages = (task: TaskProject): string[] => {
  const read = (name: string) => JSON.parse(readFileSync(join(stateFolder(task, "outbox"), name), "utf8")).entry
  const entries: { message?: string }[] = recordsIn(task, "outbox").sort().map(read)
  return entries.flatMap(({ message }) => (message === undefined ? [] : [message]))
}

export const readRecords = async (task: TaskProject): Promise<Records> => ({
  ledger: (await task.ledger.show(task.taskID)).logs.map(({ message }) => message),
  outbox: waitingMessages(task),
})

const countBrokenCalls = ({ project }: TaskProject, fault: CompactionFault): number => {
  const path = join(project.home, "client-faults")
  return existsSync(path)
    ? readFileSync(path, "utf8")
        .split("\n")
        .filter((line) => line === fault.name).length
    : 0
}

/** An agent with one compaction for each fault; `onStep` is called each turn with the fault that ends and the one that begins. */
const faultScript = (
  faults: readonly CompactionFault[],
  onStep: (
    conversation: string,
    before: CompactionFault | undefined,
    next: CompactionFault | undefined,
  ) => Promise<void>,
): Script => {
  let turn = 0
  return async ({ kind, index, conversation }): Promise<ModelReply> => {
    if (kind === "compaction") return { text: summaryUnder(faults[index]?.name ?? "nothing") }
    const step = turn++
    await onStep(conversation, faults[step - 1], faults[step])
    if (step >= faults.length) return { text: "Finished." }
    const input = { command: `echo step ${step}`, description: "A step" }
    return { tool: "bash", input, promptTokens: COMPACTING_PROMPT_TOKENS }
  }
}

const runToItsEnd = async (task: TaskProject, options: FaultyRunOptions): Promise<Ending> => {
  const argv = [...(options.launcher ?? []), task.binary.path, "run", "--log-level", "DEBUG"]
  const { exitCode, signal, stdout, stderr } = await runProgram(argv as [string, ...string[]], {
    project: task.project,
    environment: options.environment?.(task) ?? {},
    stdin: task.message,
    deadlineMs: RUN_DEADLINE_MS,
  })
  const kinds = task.model.requests.map(({ kind }) => kind)
  // OpenCode requests the title beside the first turn, before or after it.
  const requests = [...kinds.filter((kind) => kind === "title"), ...kinds.filter((kind) => kind !== "title")]
  // The summary's text is the only difference between a run and its reference.
  return { exitCode, signal, stdout: stdout.replaceAll(SUMMARY, "A summary."), stderr, requests }
}

const references = new Map<string, Promise<Ending>>()

/** Runs a conversation with as many compactions, without the bundle and without faults. */
export const runReference = (
  binary: OpenCodeBinary,
  faults: readonly CompactionFault[],
  options: FaultyRunOptions = {},
): Promise<Ending> => {
  const project: Partial<ProjectOptions> = { ...options.project, bundle: "none" }
  const key = JSON.stringify([binary.version, faults.length, project])
  const start = async () =>
    await runToItsEnd(
      await openTaskProject(
        binary,
        faultScript(faults, async () => {}),
        project,
      ),
      {},
    )
  const known = references.get(key) ?? start()
  references.set(key, known)
  return known
}

/** Runs one session through a compaction under each fault, then once more without faults. */
export const runFaults = async (
  binary: OpenCodeBinary,
  faults: readonly CompactionFault[],
  options: FaultyRunOptions = {},
) => {
  const steps = new Map<string, FaultStep>()
  let linesBefore = 0
  const log = () => task.project.batonLog().slice(linesBefore).join("\n")

  const finishStep = async (fault: CompactionFault, conversation: string): Promise<void> => {
    const { expectedLog } = fault
    if (expectedLog) {
      // Newer versions write their log a little later. A missing line is reported by the assertion on `log`.
      const seen = () => (expectedLog.test(log()) ? true : undefined)
      await eventually(`a log line like ${expectedLog}`, seen, LOG_DEADLINE_MS).catch(() => undefined)
    }
    // The last fault stays until OpenCode has ended.
    if (fault !== faults.at(-1)) await fault.lift?.(task)
    const knewTask = conversation.includes(`Task: ${task.taskID}`)
    steps.set(fault.name, { log: log(), brokenCalls: countBrokenCalls(task, fault), knewTask })
    linesBefore = task.project.batonLog().length
  }

  const script = faultScript(faults, async (conversation, before, next) => {
    if (before) {
      await finishStep(before, conversation)
      await next?.arrange?.(task, 0)
    } else if (!next) {
      // In the further run a turn is long enough to deliver the outbox.
      const empty = () => (recordsIn(task, "outbox").length === 0 ? true : undefined)
      await eventually("an empty outbox", empty, DELIVERY_DEADLINE_MS).catch(() => undefined)
    }
  })
  const task: TaskProject = await openTaskProject(binary, script, options.project)
  const { project } = task
  cpSync(
    join(REPOSITORY, "test/support/faults/fault-plugin.ts"),
    join(project.directory, ".opencode/plugins/a-fault.ts"),
  )
  const before = snapshotOutside(project)
  await faults[0]?.arrange?.(task, 0)
  const ending = await runToItsEnd(task, options)
  const records = await readRecords(task)
  await faults.at(-1)?.lift?.(task)
  const leftovers = await awaitNoProcesses(project, LEFTOVER_DEADLINE_MS)
  const after = snapshotOutside(project)
  // A single fault that left the outbox empty does not justify another start of OpenCode.
  const goesOn = faults.length > 1 || records.outbox.length > 0
  if (goesOn) await task.run("go on", { args: ["--session", newestSessionID(task)] })
  const recordsLater = goesOn ? await readRecords(task) : records
  const { description } = await task.ledger.show(task.taskID)
  return {
    ending,
    steps,
    /** At the end of the run; `recordsLater` after a further run without faults. */
    records,
    recordsLater,
    /** The task's description after all runs. */
    description,
    leftovers,
    outside: { before, after },
  }
}

export type FaultyRun = Awaited<ReturnType<typeof runFaults>>
