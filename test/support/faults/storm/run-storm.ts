import { dirname } from "node:path"
import { deadline } from "../../opencode/deadline.ts"
import { CORRECTION } from "../fault.ts"
import { CATALOGUE } from "./catalogue.ts"
import { owedLogsOf, readFiles, readHalfFiles, readPasses, readRecords } from "./observe.ts"
import { judge, type Observation, type SeenTurn } from "./oracle.ts"
import { describePlan, drawPlan, type StormPlan } from "./plan.ts"
import { openStage, type Stage } from "./stage.ts"
import { HANG_LIMIT_MS, referenceOf } from "./storm-project.ts"
import { readForeignAccesses } from "./trace.ts"

export const OWED_KINDS = ["compactions", "passes", "handoffs", "corrections", "files"] as const
export type OwedKind = (typeof OWED_KINDS)[number]

export type StormResult = {
  readonly plan: StormPlan
  readonly violations: readonly string[]
  /** Faults whose moment was reached. */
  readonly struck: readonly string[]
  /** Number of records, passes and the like that could be lost. */
  readonly owed: Readonly<Record<OwedKind, number>>
  readonly durationMs: number
  /** The folder of project and home, if it was kept. */
  readonly folder: string
}

export type StormOptions = { readonly keep: (violations: readonly string[]) => boolean }

/** Consequences of the active faults: records that may be parked, and losses that no program could prevent. */
const allowances = ({ faults, struck, refusedAll, task }: Stage) => {
  const names = struck()
  const standing = faults.filter(({ name }) => names.includes(name))
  const saysSo =
    names.some((name) => name.startsWith("app.log")) ||
    task.project.batonLog().some((line) => /only in memory|a record is lost/.test(line))
  return {
    parked: standing.reduce((sum, fault) => sum + (fault.parked ?? 0), 0),
    mayLose: refusedAll() && saysSo,
    losesState: standing.some(({ losesState }) => losesState),
  }
}

const watch = async (plan: StormPlan, stage: Stage): Promise<Observation> => {
  const { task, guard, seen } = stage
  await stage.prepare()
  const canSeeReads = guard.canSeeReads()
  const before = guard.survey()
  guard.setBaits()
  const turns: SeenTurn[] = []
  for (const [index, turn] of plan.turns.entries()) {
    const ended = await stage.run(turn, index)
    turns.push({ turn, ...ended, reference: await referenceOf(plan, turn) })
  }
  const leftBehind = await stage.liftAll()
  const clean = await stage.runClean()
  const readBaits = canSeeReads ? guard.readBaits() : []

  const { parked, mayLose, losesState } = allowances(stage)
  const isLearned = plan.features.learning && seen.corrected && !stage.correction.isSecret
  const records = await readRecords(stage)
  return {
    ...records,
    turns,
    clean: clean.endings,
    hangLimitMs: deadline(HANG_LIMIT_MS),
    owedLogs: owedLogsOf(
      seen,
      turns.some(({ wasKilled }) => wasKilled),
    ),
    owedLearning: isLearned ? CORRECTION : undefined,
    parked: { found: records.parked, expected: parked },
    mayLose,
    files: readFiles(task, seen.files),
    surroundings: { before, after: guard.survey() },
    readBaits,
    foreignAccesses: stage.isTraced ? readForeignAccesses(task.project) : [],
    passes: losesState ? [] : readPasses(task, seen.passes),
    processes: [...leftBehind, ...clean.processes],
    halfFiles: readHalfFiles(task),
    complaints: stage.complaints,
  }
}

/** Runs a plan on real OpenCode, then once more without faults, and judges the observations. */
export const runStorm = async (plan: StormPlan, { keep }: StormOptions): Promise<StormResult> => {
  const startedAt = performance.now()
  const stage = await openStage(plan)
  const { model, project } = stage.task
  // A run that the storm could not finish counts as a failure, and the other runs continue.
  const violations = await watch(plan, stage).then(judge, (error: unknown) => [
    `storm: it broke off: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`,
  ])
  await model.close()
  if (!keep(violations)) await project.remove()
  const { summaries, results, handoffs, corrected, files } = stage.seen
  const owed = {
    compactions: summaries.length,
    passes: results.size,
    handoffs: handoffs.size,
    corrections: plan.features.learning && corrected && !stage.correction.isSecret ? 1 : 0,
    files: files.size,
  }
  const durationMs = performance.now() - startedAt
  return { plan, violations, struck: stage.struck(), owed, durationMs, folder: dirname(project.directory) }
}

const describeOwed = (owed: StormResult["owed"]): string =>
  OWED_KINDS.filter((kind) => owed[kind] > 0)
    .map((kind) => `${owed[kind]} ${kind}`)
    .join(", ")

export const describeResult = ({ plan, violations, owed, durationMs }: StormResult): string => {
  const outcome = violations.length === 0 ? "ok  " : "FAIL"
  return `${outcome} seed ${plan.seed} ${(durationMs / 1000).toFixed(1)} s  ${describePlan(plan)} | owed: ${describeOwed(owed)}`
}

export type StormSeries = StormOptions & {
  readonly runs: number
  /** Seed of the first run; the others have the following numbers. */
  readonly seed: number
  readonly atOnce: number
  readonly onResult?: (result: StormResult) => void
}

/**
 * Runs a range of seeds, several at once.
 *
 * @returns the results in order of completion
 */
export const runStorms = async ({ runs, seed, atOnce, keep, onResult }: StormSeries): Promise<StormResult[]> => {
  const results: StormResult[] = []
  let next = seed
  const work = async (): Promise<void> => {
    while (next < seed + runs) {
      const result = await runStorm(drawPlan(next++, CATALOGUE), { keep })
      onResult?.(result)
      results.push(result)
    }
  }
  await Promise.all(Array.from({ length: atOnce }, work))
  return results
}
