import { cpSync, existsSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { findProcessesOf, snapshotOutside } from "./fault-leftovers.ts"
import { type OpenCodeBinary, REPOSITORY } from "./opencode-binary.ts"
import { type RunResult, runProgram } from "./opencode-run.ts"
import { eventually } from "./opencode-server.ts"
import { COMPACTING_PROMPT_TOKENS } from "./retention.ts"
import type { ModelReply, RequestKind, Script } from "./scripted-model.ts"
import { newestSessionID, openTaskProject, type TaskProject } from "./task-project.ts"
import type { ProjectOptions } from "./test-project.ts"

/** One thing that is broken while a session compacts once. */
export type Fault = {
  /** As docs/faults.md names it. */
  readonly name: string
  /** Breaks it: before the run for the first fault, while the model thinks for the others. */
  arrange(task: TaskProject): void
  lift(task: TaskProject): void
  /** What the log says while the fault stands. Absent where the log is what is broken, or nothing is missed. */
  readonly expectedLog?: RegExp
  readonly isClientFault?: boolean
  /** Where the record is when the run has ended. */
  readonly record: "ledger" | "outbox"
}

export type FaultyRunOptions = {
  readonly project?: Partial<ProjectOptions>
  readonly environment?: (task: TaskProject) => Record<string, string>
  /** A program that runs OpenCode, such as `setpriv …`. */
  readonly launcher?: readonly string[]
}

/** What a compaction's record is known by: its log entry. */
export type Records = { readonly ledger: string[]; readonly outbox: string[] }

/** How a run ended, as its user sees it, and what it asked of the model. */
export type Ending = Pick<RunResult, "exitCode" | "signal" | "stdout" | "stderr"> & { requests: RequestKind[] }

/** What was seen while a fault stood. */
export type FaultStep = {
  /** Lines that Baton logged. */
  readonly log: string
  /** Calls of the client that were broken. */
  readonly brokenCalls: number
  /** Whether the turn after the compaction was told the task. */
  readonly knewTask: boolean
}

export type FaultyRun = {
  readonly ending: Ending
  readonly steps: ReadonlyMap<string, FaultStep>
  /** When the run had ended, and after a further one in which nothing was broken. */
  readonly records: Records
  readonly recordsLater: Records
  /** The task's description at the very end. */
  readonly description: string
  /** Processes that outlived the run. */
  readonly leftovers: string[]
  readonly outside: Record<"before" | "after", ReturnType<typeof snapshotOutside>>
}

const DELIVERY_DEADLINE_MS = 30_000
const RUN_DEADLINE_MS = 200_000
const LOG_DEADLINE_MS = 10_000
/** A program that hung is ended by its own `timeout` when OpenCode is gone. */
const LEFTOVER_DEADLINE_MS = 20_000

const summaryUnder = (name: string): string => `Compacted under: ${name}.`
const SUMMARY = /Compacted under: .*\./g

/** The log entry of the compaction that the fault at `index` met. */
export const recordOf = ({ name }: Fault, index: number): string => `Compaction ${index + 1}: ${summaryUnder(name)}`

const outboxFolder = ({ project }: TaskProject): string => join(project.directory, ".opencode", "state", "outbox")

const waitingFiles = (task: TaskProject): string[] => {
  const folder = outboxFolder(task)
  return existsSync(folder) ? readdirSync(folder).filter((name) => name.endsWith(".json")) : []
}

const waitingMessages = (task: TaskProject): string[] => {
  const files = waitingFiles(task).sort()
  const entries = files.map((name) => JSON.parse(readFileSync(join(outboxFolder(task), name), "utf8")).entry)
  return entries.flatMap(({ message }: { message?: string }) => (message === undefined ? [] : [message]))
}

export const readRecords = async (task: TaskProject): Promise<Records> => ({
  ledger: (await task.ledger.show(task.taskID)).logs.map(({ message }) => message),
  outbox: waitingMessages(task),
})

const countBrokenCalls = ({ project }: TaskProject, fault: Fault): number => {
  const path = join(project.home, "client-faults")
  return existsSync(path)
    ? readFileSync(path, "utf8")
        .split("\n")
        .filter((line) => line === fault.name).length
    : 0
}

/** An agent that is compacted once for each fault; `onStep` hears of each turn and of the fault it ends and begins. */
const faultScript = (
  faults: readonly Fault[],
  onStep: (conversation: string, before: Fault | undefined, next: Fault | undefined) => Promise<void>,
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
  // The title is asked for beside the first turn, before or after it.
  const requests = [...kinds.filter((kind) => kind === "title"), ...kinds.filter((kind) => kind !== "title")]
  // What was summarised is the one thing in which a run and its reference differ.
  return { exitCode, signal, stdout: stdout.replaceAll(SUMMARY, "A summary."), stderr, requests }
}

const references = new Map<string, Promise<Ending>>()

/** A conversation with as many compactions, without the bundle and with nothing broken. */
export const runReference = (
  binary: OpenCodeBinary,
  faults: readonly Fault[],
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

/** Runs one session through a compaction under each fault, and then once more with nothing broken. */
export const runFaults = async (
  binary: OpenCodeBinary,
  faults: readonly Fault[],
  options: FaultyRunOptions = {},
): Promise<FaultyRun> => {
  const steps = new Map<string, FaultStep>()
  let linesBefore = 0
  const log = () => task.project.batonLog().slice(linesBefore).join("\n")

  const finishStep = async (fault: Fault, conversation: string): Promise<void> => {
    const { expectedLog } = fault
    if (expectedLog) {
      // Newer versions write their log a little later. A line that never comes is for the assertion on `log` to tell.
      const seen = () => (expectedLog.test(log()) ? true : undefined)
      await eventually(`a log line like ${expectedLog}`, seen, LOG_DEADLINE_MS).catch(() => undefined)
    }
    // The last one stands until OpenCode has ended.
    if (fault !== faults.at(-1)) fault.lift(task)
    const knewTask = conversation.includes(`Task: ${task.taskID}`)
    steps.set(fault.name, { log: log(), brokenCalls: countBrokenCalls(task, fault), knewTask })
    linesBefore = task.project.batonLog().length
  }

  const script = faultScript(faults, async (conversation, before, next) => {
    if (before) {
      await finishStep(before, conversation)
      next?.arrange(task)
    } else if (!next) {
      // The further run: a turn is long enough for what waits, unless it waits for ever.
      const empty = () => (waitingFiles(task).length === 0 ? true : undefined)
      await eventually("an empty outbox", empty, DELIVERY_DEADLINE_MS).catch(() => undefined)
    }
  })
  const task: TaskProject = await openTaskProject(binary, script, options.project)
  const { project } = task
  cpSync(join(REPOSITORY, "test/support/fault-plugin.ts"), join(project.directory, ".opencode/plugins/a-fault.ts"))
  const before = snapshotOutside(project)
  faults[0]?.arrange(task)
  const ending = await runToItsEnd(task, options)
  const records = await readRecords(task)
  faults.at(-1)?.lift(task)
  const noneLeft = async () => ((await findProcessesOf(project)).length === 0 ? true : undefined)
  await eventually("the end of every process", noneLeft, LEFTOVER_DEADLINE_MS).catch(() => undefined)
  const leftovers = await findProcessesOf(project)
  const after = snapshotOutside(project)
  // One fault that left nothing waiting is not worth a start of OpenCode.
  const goesOn = faults.length > 1 || records.outbox.length > 0
  if (goesOn) await task.run("go on", { args: ["--session", newestSessionID(task)] })
  const recordsLater = goesOn ? await readRecords(task) : records
  const { description } = await task.ledger.show(task.taskID)
  return { ending, steps, records, recordsLater, description, leftovers, outside: { before, after } }
}
