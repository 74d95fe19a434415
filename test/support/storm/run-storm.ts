import { existsSync, readdirSync } from "node:fs"
import { dirname } from "node:path"
import { stateFolder } from "../fault-stored-table.ts"
import { eventually } from "../opencode-server.ts"
import type { TaskProject } from "../task-project.ts"
import { faultNamed } from "./catalogue.ts"
import { createFaultClock } from "./fault-clock.ts"
import {
  awaitNoProcesses,
  owedLogsOf,
  readFiles,
  readHalfFiles,
  readPasses,
  readRecords,
  waitingRecords,
} from "./observe.ts"
import { type Ending, judge, type Observation, type SeenPass, type SeenTurn } from "./oracle.ts"
import { describePlan, type StormPlan, type Turn } from "./plan.ts"
import { referenceOf } from "./reference.ts"
import { HANG_LIMIT_MS, runTurn } from "./run-turn.ts"
import type { Scene } from "./storm-fault.ts"
import { correctionOf, openStormProject, type StormProject } from "./storm-project.ts"
import { createStormScript } from "./storm-script.ts"
import { canTrace, readForeignAccesses, tracingLauncher } from "./trace.ts"

export type StormResult = {
  readonly plan: StormPlan
  /** What does not hold; none when all is well. */
  readonly violations: readonly string[]
  readonly struck: readonly string[]
  readonly durationMs: number
  /** The folder of project and home, where it was kept. */
  readonly folder: string
}

export type StormOptions = { readonly keep: (violations: readonly string[]) => boolean }

const SETTLE_DEADLINE_MS = 120_000
const ASK_EVERY_MS = 250
/** On a busy machine the embedded ledger may take too long and be left alone for the rest of a run. */
const MOST_CLEAN_RUNS = 3

/** The first session that OpenCode's log names; none when it was killed before it made one. */
export const rootSession = ({ project }: TaskProject): string | undefined => {
  try {
    return project.log().match(/\bses_[A-Za-z0-9]{20,}/)?.[0]
  } catch {
    // There is no log folder before the first start.
    return undefined
  }
}

const messageOf = (turn: Turn, { task, correction }: StormProject): string => {
  if (turn.kind === "correction") return correction.text
  if (turn.kind === "handoff") return "finish the parser"
  return turn.kind === "task" ? task.message : "Go on with it."
}

const saysItIsInMemory = (task: TaskProject): boolean =>
  task.project.batonLog().some((line) => /only in memory|a record is lost/.test(line))

/** Runs a plan on real OpenCode, then once more with nothing broken, and judges what was seen. */
export const runStorm = async (plan: StormPlan, { keep }: StormOptions): Promise<StormResult> => {
  const startedAt = performance.now()
  const planned = plan.faults.map(({ name }) => faultNamed(name))
  const complaints: string[] = []
  const followed: Promise<unknown>[] = []
  const stops: (() => void)[] = []
  let pid: number | undefined
  let killed = false

  const agents = createStormScript({
    seed: plan.seed,
    child: planned.find(({ child }) => child !== undefined)?.child,
    root: planned.find(({ root }) => root !== undefined)?.root,
    handoffFiles: planned.flatMap(({ handoffFiles = [] }) => handoffFiles),
    correction: correctionOf(planned).text,
    onRequest: (turn, request) => clock.reach(turn, request),
    settle: () => settle(),
  })
  const opened = await openStormProject(plan, agents.script)
  const { task, guard, environment } = opened
  // What traces a program cannot be killed in its place.
  const isTraced = plan.isTraced && canTrace() && !planned.some(({ kills }) => kills)
  const launcher = [...opened.launcher, ...(isTraced ? tracingLauncher(task.project) : [])]
  const scene: Scene = {
    task,
    environment,
    killOpenCode: () => {
      if (pid === undefined) return
      killed = true
      process.kill(pid, "SIGKILL")
    },
    complain: (what) => complaints.push(what),
    follow: (work) => followed.push(work),
    onEnd: (stop) => stops.push(stop),
  }
  const clock = createFaultClock(plan, planned, () => scene, scene.complain)

  const isSettled = async (): Promise<true | undefined> => {
    const marks = stateFolder(task, "learning/waiting")
    const isLearned = !existsSync(marks) || readdirSync(marks).length === 0
    const isOpen = ({ state }: SeenPass) => state !== undefined && /wait|sent/.test(state)
    // The ledger is asked last: each question is a process.
    if (waitingRecords(task).length > 0 || !isLearned || readPasses(task, agents.seen.passes).some(isOpen))
      return undefined
    const { logs } = await task.ledger.show(task.taskID)
    const owed = owedLogsOf(
      agents.seen,
      turns.some(({ wasKilled }) => wasKilled),
    )
    const isThere = owed.every(
      ({ begins, holds, isCertain }) =>
        !isCertain || logs.some(({ message }) => message.startsWith(begins) && message.includes(holds)),
    )
    return isThere ? true : undefined
  }
  // What never comes is for the oracle to tell.
  const settle = async (): Promise<void> => {
    await eventually("every record in the ledger", isSettled, SETTLE_DEADLINE_MS, ASK_EVERY_MS).catch(() => undefined)
  }

  const sessionArgs = (): string[] => {
    const root = rootSession(task)
    return root === undefined ? [] : ["--session", root]
  }
  const run = async (turn: Turn, index: number): Promise<Ending> => {
    killed = false
    agents.beginTurn(index, turn)
    await clock.reach(index, 0)
    const args = sessionArgs()
    const message = args.length > 0 || turn.kind === "task" ? messageOf(turn, opened) : task.message
    const command = turn.kind === "handoff" && args.length > 0 ? ["--command", "handoff"] : []
    const ending = await runTurn(task, {
      message,
      args: [...args, ...command],
      environment,
      launcher,
      onStart: (started) => {
        pid = started
      },
    })
    pid = undefined
    agents.endTurn()
    return ending
  }

  await clock.prepare()
  const canSeeReads = guard.canSeeReads()
  const before = guard.survey()
  guard.setBaits()
  const turns: SeenTurn[] = []
  for (const [index, turn] of plan.turns.entries()) {
    const ending = await run(turn, index)
    turns.push({ turn, ending, reference: await referenceOf(plan, turn), wasKilled: killed })
  }
  await Promise.allSettled(followed)
  for (const stop of stops) stop()
  await clock.liftAll()
  const leftBehind = await awaitNoProcesses(task)
  agents.beginCleanRun()
  const clean: Ending[] = []
  const processes = [...leftBehind]
  while (clean.length === 0 || (clean.length < MOST_CLEAN_RUNS && waitingRecords(task).length > 0)) {
    const args = sessionArgs()
    clean.push(await runTurn(task, { message: args.length > 0 ? "Go on." : task.message, args }))
    processes.push(...(await awaitNoProcesses(task)))
  }
  const readBaits = canSeeReads ? guard.readBaits() : []

  const wasKilled = turns.some((each) => each.wasKilled)
  const struck = clock.struck()
  const standing = planned.filter(({ name }) => struck.includes(name))
  const refuses = (what: "disk" | "ledger") => standing.some((fault) => fault.refuses === what)
  const isLogBroken = struck.some((name) => name.startsWith("app.log"))
  const { parked, ...records } = await readRecords(opened)
  const seen: Observation = {
    turns,
    clean,
    hangLimitMs: HANG_LIMIT_MS,
    owedLogs: owedLogsOf(agents.seen, wasKilled),
    owedLearning:
      plan.features.learning && agents.seen.corrected && !opened.correction.isSecret
        ? "No, use tabs instead of spaces in the formatter."
        : undefined,
    ...records,
    parked: { found: parked, expected: standing.reduce((sum, fault) => sum + (fault.parked ?? 0), 0) },
    mayLose: refuses("disk") && refuses("ledger") && (isLogBroken || saysItIsInMemory(task)),
    files: readFiles(task, agents.seen.files),
    surroundings: { before, after: guard.survey() },
    readBaits,
    foreignAccesses: isTraced ? readForeignAccesses(task.project) : [],
    passes: standing.some(({ losesState }) => losesState) ? [] : readPasses(task, agents.seen.passes),
    processes,
    halfFiles: readHalfFiles(task),
    complaints,
  }
  const violations = judge(seen)
  await task.model.close()
  if (!keep(violations)) task.project.remove()
  const durationMs = performance.now() - startedAt
  return { plan, violations, struck, durationMs, folder: dirname(task.project.directory) }
}

export const describeResult = ({ plan, violations, durationMs }: StormResult): string =>
  `${violations.length === 0 ? "ok  " : "FAIL"} seed ${plan.seed} ${(durationMs / 1000).toFixed(1)} s  ${describePlan(plan)}`
