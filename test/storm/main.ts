/** `main.ts`: the fault storm on the command line. Runs on Bun: scripts/storm starts it on the OpenCode binary. */
import { mkdtempSync, rmdirSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { parseArgs } from "node:util"
import type { End } from "./plan.ts"
import { describeResult, OWED_KINDS, runStorms, type StormResult } from "./run-storm.ts"

const USAGE = `Usage: ./scripts/storm [--runs N] [--seed N] [--at-once N] [--keep]

Runs real OpenCode, 1.2.15, 1.18.33 and 2.0.15, each time with one to four random faults at random moments, and after
each once more with nothing broken. What must hold: no crash, no hang, no record lost or doubled, no file outside the
project read or written, no process left. See docs/faults.md.

  --runs N      how many (200); about 20 s each on a quiet machine
  --seed N      of the first (1); the others have the numbers after it. A seed always gives the same run
  --at-once N   how many side by side (2)
  --keep        keeps the project of every run; that of a run that fails is always kept
  --help        this text
`

const OPTIONS = {
  runs: { type: "string", default: "200" },
  seed: { type: "string", default: "1" },
  "at-once": { type: "string", default: "2" },
  keep: { type: "boolean", default: false },
  help: { type: "boolean", short: "h", default: false },
} as const

/** Ends the program if an argument is wrong. */
const readArguments = () => {
  try {
    const { values } = parseArgs({ options: OPTIONS })
    const wholeNumber = (name: "runs" | "seed" | "at-once", least: number): number => {
      const text = values[name]
      if (/^\d{1,9}$/.test(text) && Number(text) >= least) return Number(text)
      throw new Error(`--${name} takes a whole number from ${least} on, received '${text}'`)
    }
    return { ...values, runs: wholeNumber("runs", 1), seed: wholeNumber("seed", 0), atOnce: wholeNumber("at-once", 1) }
  } catch (error) {
    process.stderr.write(
      `error: ${error instanceof Error ? error.message : String(error)}; see ./scripts/storm --help\n`,
    )
    process.exit(2)
  }
}
const { help, keep, runs, seed, atOnce } = readArguments()
if (help) {
  console.log(USAGE)
  process.exit()
}

const hasFailed = ({ violations }: StormResult): boolean => violations.length > 0

const report = (result: StormResult): void => {
  console.log([describeResult(result), ...result.violations].join("\n     "))
  if (hasFailed(result)) console.log(`     again: ./scripts/storm --runs 1 --seed ${result.plan.seed} --keep`)
  if (hasFailed(result) || keep) console.log(`     kept: ${result.folder}`)
}

const ENDS: readonly End[] = ["oldest", "newest", "two"]
const row = (...cells: readonly (string | number)[]): string => `| ${cells.join(" | ")} |`

/** A table of all faults that occurred: number of runs, on which end, and how many of them failed. */
const renderSummary = (results: readonly StormResult[]): string => {
  const names = [...new Set(results.flatMap(({ struck }) => struck))].sort()
  const rows = names.map((name) => {
    const met = results.filter(({ struck }) => struck.includes(name))
    const on = ENDS.map((end) => met.filter(({ plan }) => plan.end === end).length)
    return row(name, met.length, ...on, met.filter(hasFailed).length)
  })
  const sum = (count: (result: StormResult) => number) => results.reduce((total, result) => total + count(result), 0)
  const owed = OWED_KINDS.map((kind) => `${sum((result) => result.owed[kind])} ${kind}`)
  const seeds = results.filter(hasFailed).map(({ plan }) => plan.seed)
  const failed = `${seeds.length} runs failed${seeds.length > 0 ? `: seeds ${seeds.sort((a, b) => a - b).join(", ")}` : ""}`
  return [
    row("Fault", "Runs", ...ENDS, "Failed"),
    row("---", ...[...ENDS, "", ""].map(() => "---:")),
    ...rows,
    `\nOwed: ${owed.join(", ")}`,
    `${results.length} runs, ${sum(({ struck }) => struck.length)} faults of ${names.length} kinds struck, ${failed}`,
  ].join("\n")
}

// Failed runs are kept in this folder; it is removed if it is empty.
const folder = mkdtempSync(join(tmpdir(), "baton-storm-"))
process.env.TMPDIR = folder
const keeps = (violations: readonly string[]) => keep || violations.length > 0
const results = await runStorms({ runs, seed, atOnce, keep: keeps, onResult: report })
console.log(`\n${renderSummary(results)}`)
const isClean = !results.some(hasFailed)
if (isClean && !keep) rmdirSync(folder)
process.exit(isClean ? 0 : 1)
