import { beforeAll, expect, test } from "vitest"
import { promised } from "../requirements.ts"
import { SEED } from "../support/effort.ts"
import { closeTaskProjects, deadline, IS_NIGHT } from "../support/index.ts"
import { describeResult, OWED_KINDS, runStorms, type StormResult } from "./run-storm.ts"
import { HANG_LIMIT_MS } from "./stage.ts"

closeTaskProjects("itself")

const RUNS = IS_NIGHT ? 50 : 10
const AT_ONCE = 2
/** Different seeds of the tests use different runs. */
const FIRST = (SEED % 1_000_000) * RUNS
const RUN_DEADLINE_MS = 180_000
const seeds = Array.from({ length: RUNS }, (_, index) => FIRST + index)

let results: StormResult[] = []

beforeAll(
  async () => {
    const keep = () => process.env.BATON_KEEP_PROJECTS !== undefined
    results = await runStorms({ runs: RUNS, seed: FIRST, atOnce: AT_ONCE, keep })
  },
  deadline(HANG_LIMIT_MS + RUNS * RUN_DEADLINE_MS),
)

test.each(seeds)(promised(["storm.B2", "faults.F2"], "the random run of seed %i leaves all whole"), (seed) => {
  const result = results.find(({ plan }) => plan.seed === seed)
  if (result === undefined) throw new Error(`seed ${seed} was not run`)
  const again = `${describeResult(result)}\nagain: ./scripts/storm --runs 1 --seed ${seed} --keep`
  expect(result.violations, again).toEqual([])
  expect(result.struck.length, describeResult(result)).toBeGreaterThan(0)
})

// Ten runs may lack one of them.
if (IS_NIGHT)
  test(promised("storm.B2", "the runs have compactions, passes, handoffs, corrections and files to lose"), () => {
    const owed = OWED_KINDS.map((kind) => [kind, results.reduce((sum, result) => sum + result.owed[kind], 0)] as const)
    expect(owed.filter(([, count]) => count === 0)).toEqual([])
  })
