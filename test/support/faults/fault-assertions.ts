import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { beforeAll, describe, expect, test } from "vitest"
import { promised } from "../../requirements.ts"
import { COMPACTING_PROMPT_TOKENS } from "../model/retention.ts"
import { inForm } from "../model/retention-2.ts"
import { bash, type Script } from "../model/scripted-model.ts"
import { deadline } from "../opencode/deadline.ts"
import { withOneHeading } from "../opencode/opencode-2.ts"
import { isLine2, type OpenCodeBinary } from "../opencode/opencode-binary.ts"
import { eventually } from "../opencode/opencode-server.ts"
import { lightConfig, newestSessionID, openTaskProject, TASK, type TaskProject } from "../opencode/task-project.ts"
import type { CompactionFault, FaultyRunOptions } from "./fault.ts"
import { surveyAround } from "./fault-guard.ts"
import { awaitNoProcesses } from "./fault-leftovers.ts"
import { readRecords, recordsIn } from "./fault-stored-table.ts"
import { addFaultPlugin } from "./fault-table.ts"

const BOTH_RUNS_DEADLINE_MS = deadline(300_000)
const DELIVERY_DEADLINE_MS = 30_000
const RUN_DEADLINE_MS = 200_000
const LOG_DEADLINE_MS = 10_000
/** After OpenCode has ended, its own `timeout` ends a program that hangs. */
const LEFTOVER_DEADLINE_MS = 20_000

/** While one fault was active: Baton's log, and the number of broken calls; `knewTask`: the turn after it was told the task. */
type FaultStep = { log: string; brokenCalls: number; knewTask: boolean }

const summaryUnder = (fault?: CompactionFault): string => `Compacted under: ${fault?.name}.`
const SUMMARY = /Compacted under: .*\./g

/** The log entry of the compaction during the fault at `index`. */
const recordOf = (fault: CompactionFault, index: number): string => `Compaction ${index + 1}: ${summaryUnder(fault)}`

const countBrokenCalls = ({ project }: TaskProject, { name }: CompactionFault): number => {
  const path = join(project.home, "client-faults")
  const calls = existsSync(path) ? readFileSync(path, "utf8").split("\n") : []
  return calls.filter((line) => line === name).length
}

/** An agent with one compaction for each fault; `onStep` is called each turn with the fault that ends and the one that begins. */
const faultScript = (
  binary: OpenCodeBinary,
  faults: readonly CompactionFault[],
  onStep?: (conversation: string, before?: CompactionFault, next?: CompactionFault) => Promise<void>,
): Script => {
  let turn = 0
  return async (request) => {
    const { kind, index, conversation } = request
    const summary = summaryUnder(faults[index])
    if (kind === "compaction") return { text: isLine2(binary) ? inForm(request, `- ${summary}`) : summary }
    const step = turn++
    await onStep?.(conversation, faults[step - 1], faults[step])
    return step < faults.length ? bash(`echo step ${step}`, COMPACTING_PROMPT_TOKENS) : { text: "Finished." }
  }
}

/** The end of a run as its user sees it, and the kinds of requests to the model. */
const runToItsEnd = async (task: TaskProject, { launcher = [], environment }: FaultyRunOptions) => {
  const { exitCode, signal, stdout, stderr } = await task.run(task.message, {
    launcher,
    environment: environment?.(task) ?? {},
    deadlineMs: RUN_DEADLINE_MS,
  })
  const isOn2 = isLine2(task.binary)
  const kinds = task.model.requests.map(({ kind }) => kind)
  // OpenCode 1 requests the title beside the first turn, before or after it; on OpenCode 2 Baton gives it.
  const titles = isOn2 ? [] : kinds.filter((kind) => kind === "title")
  return {
    exitCode,
    signal,
    // The summary's text is the only difference between a run and its reference.
    stdout: stdout.replaceAll(SUMMARY, "A summary."),
    stderr: isOn2 ? withOneHeading(stderr) : stderr,
    requests: [...titles, ...kinds.filter((kind) => kind !== "title")],
  }
}

type Ending = Awaited<ReturnType<typeof runToItsEnd>>

const references = new Map<string, Promise<Ending>>()

/** Runs a conversation with as many compactions, without the bundle and without faults. */
const runReference = (
  binary: OpenCodeBinary,
  faults: readonly CompactionFault[],
  options: FaultyRunOptions,
): Promise<Ending> => {
  const project = { ...options.project, bundle: "none" } as const
  const key = JSON.stringify([binary.version, faults.length, project])
  const start = () =>
    openTaskProject(binary, faultScript(binary, faults), project).then((task) => runToItsEnd(task, {}))
  const known = references.get(key) ?? start()
  references.set(key, known)
  return known
}

/** Runs one session through a compaction under each fault, then once more without faults. */
const runFaults = async (binary: OpenCodeBinary, faults: readonly CompactionFault[], options: FaultyRunOptions) => {
  const steps = new Map<string, FaultStep>()
  let linesBefore = 0
  const lines = (): string[] => {
    try {
      return task.project.batonLog()
    } catch {
      // The fault may be the log's own.
      return []
    }
  }
  const log = () => lines().slice(linesBefore).join("\n")

  const finishStep = async (fault: CompactionFault, conversation: string): Promise<void> => {
    const { expectedLog } = fault
    if (expectedLog) {
      // Newer versions write their log a little later. A missing line is reported by the assertion on `log`.
      const seen = () => expectedLog.test(log()) || undefined
      await eventually(`a log line like ${expectedLog}`, seen, LOG_DEADLINE_MS).catch(() => undefined)
    }
    // The last fault stays until OpenCode has ended.
    if (fault !== faults.at(-1)) await fault.lift?.(task)
    const knewTask = conversation.includes(`Task: ${task.taskID}`)
    steps.set(fault.name, { log: log(), brokenCalls: countBrokenCalls(task, fault), knewTask })
    linesBefore = lines().length
  }

  const script = faultScript(binary, faults, async (conversation, before, next) => {
    if (before) {
      await finishStep(before, conversation)
      await next?.arrange?.(task, 0)
    } else if (!next) {
      // In the further run a turn is long enough to deliver the outbox.
      const empty = () => recordsIn(task, "outbox").length === 0 || undefined
      await eventually("an empty outbox", empty, DELIVERY_DEADLINE_MS).catch(() => undefined)
    }
  })
  const task: TaskProject = await openTaskProject(binary, script, options.project)
  const { project } = task
  // It breaks the client of OpenCode 1.
  if (!isLine2(binary)) addFaultPlugin(project)
  const before = surveyAround(project)
  await faults[0]?.arrange?.(task, 0)
  const ending = await runToItsEnd(task, options)
  const records = await readRecords(task)
  await faults.at(-1)?.lift?.(task)
  const leftovers = await awaitNoProcesses(project, LEFTOVER_DEADLINE_MS)
  const after = surveyAround(project)
  // A single fault that left the outbox empty, of handoffs too, does not justify another start of OpenCode.
  const goesOn = faults.length > 1 || recordsIn(task, "outbox").length > 0
  const session = isLine2(binary) ? ["--continue"] : ["--session", newestSessionID(task)]
  if (goesOn) await task.run("go on", { args: session })
  const recordsLater = goesOn ? await readRecords(task) : records
  const { description } = await task.ledger.show(task.taskID)
  // Records at the end of the run, and after a further run without faults.
  return { ending, steps, records, recordsLater, description, leftovers, outside: { before, after } }
}

/** The tests of a table of faults, which meet one session one after the other. All promises of faults.F1 are tested here. */
export const describeFaults = (
  title: string,
  binary: OpenCodeBinary,
  faults: readonly CompactionFault[],
  { project, ...others }: FaultyRunOptions = {},
): void => {
  const options = { ...others, project: { config: lightConfig(binary), ...project } }
  describe(title, () => {
    let reference: Ending
    let run: Awaited<ReturnType<typeof runFaults>>
    beforeAll(async () => {
      ;[reference, run] = await Promise.all([runReference(binary, faults, options), runFaults(binary, faults, options)])
    }, BOTH_RUNS_DEADLINE_MS)

    test.each(faults)(
      promised("faults.F1", "$name: the log says so, the agent goes on and the record is kept"),
      (fault) => {
        const step = run.steps.get(fault.name)
        if (fault.expectedLog) expect(step?.log).toMatch(fault.expectedLog)
        if (fault.isClientFault) expect(step?.brokenCalls).toBeGreaterThan(0)
        expect(step?.knewTask, "the next turn was told the task").toBe(true)
        const record = recordOf(fault, faults.indexOf(fault))
        const { ledger, outbox } = run.records
        // On a busy machine Baton may stop calling the ledger for a while; the record then waits in the outbox. A record whose
        // call timed out too early is found in the ledger by the next delivery.
        for (const place of [ledger, outbox])
          expect(place.filter((message) => message === record).length).toBeLessThanOrEqual(1)
        expect(fault.record === "outbox" ? outbox : [...ledger, ...outbox]).toContain(record)
      },
    )

    test(promised("faults.F1", "the run exits, prints and asks the model as it does without the bundle"), () => {
      expect(reference.exitCode).toBe(0)
      expect(run.ending).toEqual(reference)
    })

    test(
      promised("faults.F1", "every record reaches the ledger once and in order when nothing is broken any more"),
      () => {
        expect(run.recordsLater).toEqual({ ledger: faults.map(recordOf), outbox: [] })
        expect(run.description.startsWith(TASK.specification)).toBe(true)
        expect(run.description.match(/# Handoff after compaction \d+/g)).toEqual([
          `# Handoff after compaction ${faults.length}`,
        ])
      },
    )

    test(promised(["faults.F1", "faults.F2"], "no process outlives the run and nothing is written elsewhere"), () => {
      expect(run.leftovers).toEqual([])
      expect(run.outside.after).toEqual(run.outside.before)
    })
  })
}
