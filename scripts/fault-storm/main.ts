/** `main.ts`: the fault storm on the command line. Runs on Bun: scripts/storm starts it on the OpenCode binary. */
import { mkdtempSync, rmdirSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { describeResult, type StormResult } from "../../test/support/storm/run-storm.ts"
import { runStorms } from "../../test/support/storm/run-storms.ts"
import { parseArguments } from "./arguments.ts"
import { renderSummary } from "./summary.ts"

const USAGE = `Usage: ./scripts/storm [--runs N] [--seed N] [--at-once N] [--keep]

Runs real OpenCode, oldest and newest supported, each time with one to four random faults at random moments, and after
each once more with nothing broken. What must hold: no crash, no hang, no record lost or doubled, no file outside the
project read or written, no process left. See docs/faults.md.

  --runs N      how many (200); about 20 s each on a quiet machine
  --seed N      of the first (1); the others have the numbers after it. A seed always gives the same run
  --at-once N   how many side by side (2)
  --keep        keeps the project of every run; that of a run that fails is always kept
  --help        this text
`

const report = (result: StormResult, keep: boolean): void => {
  const { plan, violations, folder } = result
  console.log(describeResult(result))
  for (const violation of violations) console.log(`     ${violation}`)
  if (violations.length > 0) console.log(`     again: ./scripts/storm --runs 1 --seed ${plan.seed} --keep`)
  if (violations.length > 0 || keep) console.log(`     kept: ${folder}`)
}

const parsed = parseArguments(process.argv.slice(2))
if (parsed.kind === "help") console.log(USAGE)
else if (parsed.kind === "wrong") {
  process.stderr.write(`error: ${parsed.reason}; see ./scripts/storm --help\n`)
  process.exitCode = 2
} else {
  // What is kept lies in a folder of its own; without anything kept it goes.
  const folder = mkdtempSync(join(tmpdir(), "baton-storm-"))
  process.env.TMPDIR = folder
  const { runs, seed, atOnce, keep } = parsed
  const results = await runStorms({
    runs,
    seed,
    atOnce,
    keep: (violations) => keep || violations.length > 0,
    onResult: (result) => report(result, keep),
  })
  console.log(`\n${renderSummary(results)}`)
  const isClean = results.every(({ violations }) => violations.length === 0)
  if (isClean && !keep) rmdirSync(folder)
  process.exitCode = isClean ? 0 : 1
}
process.exit()
