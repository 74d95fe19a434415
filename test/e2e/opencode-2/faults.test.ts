import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { beforeAll, describe, expect, test } from "vitest"
import { promised } from "../../requirements.ts"
import type { CompactionFault, FaultyRunOptions } from "../../support/faults/fault.ts"
import { CLAIM_FAULTS } from "../../support/faults/fault-claim-table.ts"
import { surveyAround } from "../../support/faults/fault-guard.ts"
import {
  FOREIGN_PROG,
  HANGING_LEDGERS,
  LEDGER_FAULTS,
  pathWithFakeProg,
} from "../../support/faults/fault-ledger-table.ts"
import { awaitNoProcesses } from "../../support/faults/fault-leftovers.ts"
import { MACHINE_FAULTS } from "../../support/faults/fault-machine-table.ts"
import { DAMAGES, damageState, readRecords, recordsIn, stateFolder } from "../../support/faults/fault-stored-table.ts"
import { HELD_TO_MODES, lineWith, PROJECT_FAULTS } from "../../support/faults/fault-table.ts"
import { makeOwnFolder } from "../../support/files/own-state.ts"
import {
  deadline,
  eventually,
  IS_NIGHT,
  LEDGER_WAIT_MS,
  REPOSITORY,
  type Script,
  TASK,
  type TaskProject,
} from "../../support/index.ts"
import { inForm } from "../../support/model/retention-2.ts"
import { FULL_TOKENS, openTask2, type Task2, withOneHeading } from "../../support/opencode/opencode-2.ts"
import { HAS_OPENCODE_2 } from "../../support/opencode/opencode-binary.ts"

const RUN_DEADLINE_MS = 200_000
const BOTH_RUNS_DEADLINE_MS = deadline(400_000)
const LOG_DEADLINE_MS = 10_000
const DELIVERY_DEADLINE_MS = 30_000
const LEFTOVER_DEADLINE_MS = 20_000

/** The log is a folder, so that no line of Baton's can be written. */
const LOG_FAULT: CompactionFault = {
  name: "baton.log cannot be written",
  when: "any",
  arrange: ({ project }) => {
    const path = logOf(project)
    rmSync(path, { force: true })
    mkdirSync(path, { recursive: true })
  },
  lift: ({ project }) => rmSync(logOf(project), { recursive: true }),
}

const logOf = ({ environment }: TaskProject["project"]): string =>
  join(environment.XDG_DATA_HOME ?? "", "opencode", "log", "baton.log")

const OF_THE_PROJECT = [...PROJECT_FAULTS.filter(({ isOf1 }) => !isOf1), LOG_FAULT]
const OF_THE_MACHINE = [
  ...MACHINE_FAULTS.filter(({ isOf1 }) => !isOf1),
  FOREIGN_PROG,
  // By day without what test/contract/ledger/claims.test.ts holds.
  ...(IS_NIGHT ? CLAIM_FAULTS : CLAIM_FAULTS.slice(0, 2)),
]

const summaryUnder = (fault?: CompactionFault): string => `Compacted under: ${fault?.name}.`

/** An agent with one compaction for each fault; `onStep` is called each turn with the fault that ends and the one that begins. */
const faultScript = (
  faults: readonly CompactionFault[],
  onStep?: (conversation: string, before?: CompactionFault, next?: CompactionFault) => Promise<void>,
): Script => {
  let turn = 0
  return async (request) => {
    const { kind, index, conversation } = request
    if (kind === "compaction") return { text: inForm(request, `- ${summaryUnder(faults[index])}`) }
    const step = turn++
    await onStep?.(conversation, faults[step - 1], faults[step])
    if (step >= faults.length) return { text: "Finished." }
    return { tool: "shell", input: { command: `echo step ${step}`, description: "A step" }, promptTokens: FULL_TOKENS }
  }
}

/** The end of a run as its user sees it, and how often the model was asked for what. */
const runToItsEnd = async (task: Task2, { launcher = [], environment }: FaultyRunOptions) => {
  const own = environment?.(task as unknown as TaskProject) ?? {}
  const { exitCode, signal, stdout, stderr } = await task.run(task.message, {
    launcher,
    environment: own,
    deadlineMs: RUN_DEADLINE_MS,
  })
  const [compactions, turns] = (["compaction", "turn"] as const).map((kind) => task.model.received(kind).length)
  return { exitCode, signal, stdout, stderr: withOneHeading(stderr), compactions, turns }
}

type Ending = Awaited<ReturnType<typeof runToItsEnd>>

const references = new Map<string, Promise<Ending>>()

/** As many compactions on the same machine without the bundle and without faults: without git OpenCode prints less. */
const runReference = (faults: readonly CompactionFault[], options: FaultyRunOptions): Promise<Ending> => {
  const project = { ...options.project, bundle: "none" } as const
  const isWithoutGit = faults.some(({ name }) => name === "git is missing")
  const environment = isWithoutGit && options.environment ? { environment: options.environment } : {}
  const start = () => openTask2(faultScript(faults), project).then((task) => runToItsEnd(task, environment))
  const key = JSON.stringify([faults.length, project, isWithoutGit])
  const known = references.get(key) ?? start()
  references.set(key, known)
  return known
}

/** Runs one session through a compaction under each fault, then once more without faults. */
const runFaults = async (faults: readonly CompactionFault[], options: FaultyRunOptions) => {
  const steps = new Map<string, { log: string; knewTask: boolean }>()
  let linesBefore = 0
  const log = () => task.project.batonLog().slice(linesBefore).join("\n")
  const finish = async (fault: CompactionFault, conversation: string): Promise<void> => {
    const { expectedLog } = fault
    if (expectedLog)
      await eventually(`a line like ${expectedLog}`, () => expectedLog.test(log()) || undefined, LOG_DEADLINE_MS).catch(
        () => undefined,
      )
    if (fault !== LOG_FAULT)
      steps.set(fault.name, { log: log(), knewTask: conversation.includes(`Task: ${task.taskID}`) })
    // The last fault stays until OpenCode has ended.
    if (fault !== faults.at(-1)) await fault.lift?.(scene)
    if (fault === LOG_FAULT) steps.set(fault.name, { log: "", knewTask: conversation.includes(`Task: ${task.taskID}`) })
    linesBefore = fault === LOG_FAULT ? 0 : task.project.batonLog().length
  }
  const script = faultScript(faults, async (conversation, before, next) => {
    if (before) {
      await finish(before, conversation)
      await next?.arrange?.(scene, 0)
    } else if (!next) {
      // In the further run a turn is long enough to deliver the outbox.
      const empty = () => recordsIn(task, "outbox").length === 0 || undefined
      await eventually("an empty outbox", empty, DELIVERY_DEADLINE_MS).catch(() => undefined)
    }
  })
  const task = await openTask2(script, options.project)
  const scene = task as unknown as TaskProject
  const before = surveyAround(task.project)
  await faults[0]?.arrange?.(scene, 0)
  const ending = await runToItsEnd(task, options)
  const records = await readRecords(scene)
  await faults.at(-1)?.lift?.(scene)
  const leftovers = await awaitNoProcesses(task.project, LEFTOVER_DEADLINE_MS)
  const after = surveyAround(task.project)
  if (recordsIn(task, "outbox").length > 0) await task.run("go on", { args: ["-c"] })
  const recordsLater = await readRecords(scene)
  const { description } = await task.ledger.show(task.taskID)
  return { ending, steps, records, recordsLater, description, leftovers, before, after }
}

const describeFaults = (title: string, faults: readonly CompactionFault[], options: FaultyRunOptions = {}): void => {
  const recordOf = (fault: CompactionFault) => `Compaction ${faults.indexOf(fault) + 1}: ${summaryUnder(fault)}`
  describe(title, () => {
    let reference: Ending
    let run: Awaited<ReturnType<typeof runFaults>>
    beforeAll(async () => {
      reference = await runReference(faults, options)
      run = await runFaults(faults, options)
    }, BOTH_RUNS_DEADLINE_MS)

    test.each(faults)(
      promised("faults.F1", "$name: the log says so, the agent goes on and the record is kept"),
      (fault) => {
        const step = run.steps.get(fault.name)
        if (fault.expectedLog) expect(step?.log).toMatch(fault.expectedLog)
        expect(step?.knewTask, "the next turn was told the task").toBe(true)
        const { ledger, outbox } = run.records
        expect(fault.record === "outbox" ? outbox : [...ledger, ...outbox]).toContain(recordOf(fault))
      },
    )

    test(promised("faults.F1", "the run exits, prints and asks the model as it does without the bundle"), () => {
      expect(reference.exitCode, reference.stderr).toBe(0)
      expect(run.ending).toEqual(reference)
    })

    test(
      promised("faults.F1", "every record reaches the ledger once, and nothing is left or written elsewhere"),
      () => {
        expect(run.recordsLater).toEqual({ ledger: faults.map(recordOf), outbox: [] })
        expect(run.description.startsWith(TASK.specification)).toBe(true)
        expect(run.leftovers).toEqual([])
        expect(run.after).toEqual(run.before)
      },
    )
  })
}

describe.runIf(HAS_OPENCODE_2)("OpenCode 2.0.15", () => {
  describeFaults("faults of prompts, state folder and log", OF_THE_PROJECT, { launcher: HELD_TO_MODES })

  const environment = (task: TaskProject) => ({ PATH: pathWithFakeProg(task), BATON_LEDGER: "real" })
  describeFaults("faults of the ledger", LEDGER_FAULTS, { environment })
  // The first call that hangs may be any of them.
  const expectedLog = lineWith("the ledger timed out: no calls for a while")
  const onWrites = HANGING_LEDGERS.slice(1).map((fault) => ({ ...fault, expectedLog }))
  describeFaults("a ledger that hangs on writes", onWrites, { environment })

  for (const fault of OF_THE_MACHINE) describeFaults(fault.name, [fault], fault.options)

  test(
    promised(["faults.F1", "ledger.D2"], "damaged state and records are named, the task is known"),
    async () => {
      const full = { text: "Half of it.", promptTokens: FULL_TOKENS }
      const task = await openTask2((request) =>
        request.kind === "compaction" ? { text: inForm(request, `- Summary ${request.index + 1}.`) } : full,
      )
      makeOwnFolder(task.project, "outbox")
      const names = DAMAGES.map((_, index) => `000000000000${index}-000000-damaged.json`)
      for (const [index, { content }] of DAMAGES.entries())
        writeFileSync(join(stateFolder(task, "outbox"), names[index] ?? ""), content)
      await task.runWell(task.message)
      const first = task.project.batonLog().join("\n")
      for (const name of names)
        expect(first).toMatch(
          lineWith("a record cannot be delivered and is parked", name, "no outbox record of version"),
        )
      expect(recordsIn(task, "outbox/parked")).toEqual(names)
      // OpenCode 2 shows plugins nothing from before a compaction, which keeps the task.
      for (const pair of [DAMAGES.slice(0, 2), DAMAGES.slice(2)]) {
        const linesBefore = task.project.batonLog().length
        for (const found of pair) damageState(task, found)
        // Compacts, since the answer before it filled the context.
        await task.runWell("go on", "-c")
        const log = task.project.batonLog().slice(linesBefore).join("\n")
        for (const { folder, reason } of pair)
          expect(log).toMatch(lineWith("stored state is unusable and ignored", `state/${folder}/`, reason))
        expect(task.model.received("turn").at(-1)?.conversation).toContain(`Task: ${task.taskID}`)
      }
      const two = async () => ((await task.ledger.messages(task.taskID)).length === 2 ? true : undefined)
      await eventually("both records", two, ...LEDGER_WAIT_MS)
      expect(await task.ledger.messages(task.taskID)).toEqual([1, 2].map((row) => `Compaction ${row}: Summary ${row}.`))
    },
    deadline(300_000),
  )

  test(
    promised(["faults.F2", "start.A6"], "killed by kill -9 after a compaction, the next run goes on"),
    async () => {
      let pid = 0
      const task = await openTask2(({ kind, index }) => {
        if (kind === "compaction") return { text: "## Done\n\n- The lexer was left alone." }
        if (index === 1) process.kill(pid, "SIGKILL")
        return index === 0
          ? { tool: "shell", input: { command: "true", description: "A step" }, promptTokens: FULL_TOKENS }
          : { text: "Going on." }
      })
      const onStart = (started: number) => {
        pid = started
      }
      const killed = await task.run(task.message, { onStart })
      expect(killed.signal).toBe("SIGKILL")
      expect(await awaitNoProcesses(task.project, LEFTOVER_DEADLINE_MS)).toEqual([])
      await task.runWell(`Task: ${task.taskID}\n`)
      const { conversation = "" } = task.model.received("turn").at(-1) ?? {}
      for (const part of [TASK.title, TASK.definitionOfDone, "The lexer was left alone."])
        expect(conversation).toContain(part)
      expect(await task.ledger.messages(task.taskID)).toEqual(["Compaction 1: The lexer was left alone."])
    },
    deadline(300_000),
  )
})

test(promised("faults.F1", "docs/faults.md says of each row what is seen on 2.0.15"), () => {
  const rows =
    readFileSync(join(REPOSITORY, "docs/faults.md"), "utf8").split("\n| --- ").at(1)?.split("\n\n").at(0) ?? ""
  const cells = rows
    .split("\n")
    .slice(1)
    .map((row) => row.replace(/\|$/, "").split("|").at(-1)?.trim())
  expect(cells.length).toBeGreaterThan(20)
  expect(cells.filter((cell) => !cell || !/^(?:the same|not )/.test(cell))).toEqual([])
})
