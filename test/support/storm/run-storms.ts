import { CATALOGUE } from "./catalogue.ts"
import { drawPlan } from "./plan.ts"
import { runStorm, type StormOptions, type StormResult } from "./run-storm.ts"

export type StormSeries = StormOptions & {
  readonly runs: number
  /** Of the first run; the others have the numbers after it. */
  readonly seed: number
  readonly atOnce: number
  readonly onResult?: (result: StormResult) => void
}

/** Runs a stretch of seeds, some at once. @returns the results as they came */
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
