import { dirname } from "node:path"
import { CORRECTION } from "../support/faults/fault.ts"
import { surveyAround } from "../support/faults/fault-guard.ts"
import { deadline } from "../support/opencode/deadline.ts"
import { withOneHeading } from "../support/opencode/opencode-2.ts"
import type { RunResult } from "../support/opencode/opencode-run.ts"
import { CATALOGUE } from "./catalogue.ts"
import { owedLogsOf, readFiles, readHalfFiles, readPasses, readRecords } from "./observe.ts"
import { judge, type Observation, type SeenTurn } from "./oracle.ts"
import { describePlan, drawPlan, type StormPlan } from "./plan.ts"
import { HANG_LIMIT_MS, openStage, referenceOf, type Stage } from "./stage.ts"
import { readForeignAccesses } from "./trace.ts"

export const OWED_KINDS = ["compactions", "passes", "handoffs", "corrections", "files"] as const

/** Faults under which OpenCode 2 finds no repository. */
const WITHOUT_GIT = ["git is missing", "the project is no git repository"]

/** Disk and ledger refused together, and the log says that a record is only in memory, unless it is the log that is broken. */
const mayLose = ({ struck, refusedAll, task }: Stage): boolean =>
  refusedAll() &&
  (struck().some(({ name }) => name.startsWith("app.log")) ||
    task.project.batonLog().some((line) => /only in memory|a record is lost/.test(line)))

const isLearned = ({ features }: StormPlan, { seen, correction }: Stage): boolean =>
  features.learning && seen.corrected && !correction.isSecret

const watch = async (plan: StormPlan, stage: Stage): Promise<Observation> => {
  const { task, guard, seen } = stage
  const canSeeReads = guard.canSeeReads()
  const before = surveyAround(task.project)
  guard.setBaits()
  const turns: SeenTurn[] = []
  const isHeadingByChance = plan.end === "two" && plan.faults.some(({ name }) => WITHOUT_GIT.includes(name))
  const printed = (ending: RunResult): RunResult =>
    isHeadingByChance ? { ...ending, stderr: withOneHeading(ending.stderr) } : ending
  for (const [index, turn] of plan.turns.entries()) {
    const ended = await stage.run(turn, index)
    const reference = await referenceOf(plan, turn)
    turns.push({ turn, ...ended, ending: printed(ended.ending), reference: printed(reference) })
  }
  const leftBehind = await stage.liftAll()
  const clean = await stage.runClean()
  const readBaits = canSeeReads ? guard.readBaits().map((path) => `${path} was read`) : []
  const struck = stage.struck()
  const wasKilled = turns.some((turn) => turn.wasKilled)
  const { leak, secret, ...records } = await readRecords(stage)
  return {
    ...records,
    turns,
    clean: clean.endings,
    waiting: clean.waiting,
    hangLimitMs: deadline(HANG_LIMIT_MS),
    owedLogs: owedLogsOf(seen, wasKilled),
    owedLearning: isLearned(plan, stage) ? CORRECTION : undefined,
    parked: { found: records.parked, expected: struck.reduce((sum, { parked = 0 }) => sum + parked, 0) },
    mayLose: mayLose(stage),
    files: readFiles(task, seen.files),
    surroundings: { before, after: surveyAround(task.project) },
    passes: struck.some(({ losesState }) => losesState) ? [] : readPasses(task, seen.passes),
    found: {
      outside: [...readBaits, ...(stage.isTraced ? readForeignAccesses(task.project) : [])],
      leak,
      secret,
      left: [...leftBehind, ...clean.processes].map((line) => `the process ${line}`),
      half: readHalfFiles(task),
    },
    complaints: stage.complaints,
  }
}

type Keep = (violations: readonly string[]) => boolean

/** Runs a plan on real OpenCode, then once more without faults, and judges the observations. */
const runStorm = async (plan: StormPlan, keep: Keep) => {
  const startedAt = performance.now()
  const stage = await openStage(plan)
  const { model, project } = stage.task
  // A run that the storm could not finish counts as a failure, and the other runs continue.
  const violations = await watch(plan, stage).then(judge, (error: unknown) => [
    `storm: it broke off: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`,
  ])
  await model.close()
  if (!keep(violations)) await project.remove()
  const { summaries, results, handoffs, files } = stage.seen
  const corrections = isLearned(plan, stage) ? 1 : 0
  return {
    plan,
    violations,
    /** Faults whose moment was reached. */
    struck: stage.struck().map(({ name }) => name),
    /** Number of records, passes and the like that could be lost. */
    owed: {
      ...{ compactions: summaries.length, passes: results.size, handoffs: handoffs.size },
      ...{ corrections, files: files.size },
    } satisfies Record<(typeof OWED_KINDS)[number], number>,
    durationMs: performance.now() - startedAt,
    /** The folder of project and home, if it was kept. */
    folder: dirname(project.directory),
  }
}

export type StormResult = Awaited<ReturnType<typeof runStorm>>

export const describeResult = ({ plan, violations, owed, durationMs }: StormResult): string => {
  const outcome = violations.length === 0 ? "ok  " : "FAIL"
  const seconds = (durationMs / 1000).toFixed(1)
  const counts = OWED_KINDS.flatMap((kind) => (owed[kind] > 0 ? [`${owed[kind]} ${kind}`] : []))
  return `${outcome} seed ${plan.seed} ${seconds} s  ${describePlan(plan)} | owed: ${counts.join(", ")}`
}

/** Runs a range of seeds, several at once. @returns the results in order of completion */
export const runStorms = async (series: {
  runs: number
  /** Of the first run; the others have the following numbers. */
  seed: number
  atOnce: number
  /** Keeps the project of a run with these violations. */
  keep: Keep
  onResult?: (result: StormResult) => void
}): Promise<StormResult[]> => {
  const { runs, seed, atOnce, keep, onResult } = series
  const results: StormResult[] = []
  let next = seed
  const work = async (): Promise<void> => {
    while (next < seed + runs) {
      const result = await runStorm(drawPlan(next++, CATALOGUE), keep)
      onResult?.(result)
      results.push(result)
    }
  }
  await Promise.all(Array.from({ length: atOnce }, work))
  return results
}
