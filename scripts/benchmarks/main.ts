/**
 * `main.ts [NAME …] [--quick]`: measures and, unless quick, writes docs/benchmarks/ and the tables of
 * docs/benchmarks.md. Runs on Bun: scripts/bench starts it on the OpenCode binary.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { REPOSITORY } from "../../test/support/opencode-binary.ts"
import { parseArguments } from "./arguments.ts"
import { CATALOGUE } from "./catalogue.ts"
import { renderDocument } from "./document.ts"
import { currentLoad, describeMachine } from "./machine.ts"
import { renderPlots } from "./plots.ts"
import { BENCHMARKS, type BenchmarkName, type Measurement, type Results } from "./results.ts"
import { tablesOf } from "./tables.ts"

const DOCS = join(REPOSITORY, "docs")
const FOLDER = join(DOCS, "benchmarks")
const RESULTS = join(FOLDER, "results.json")
const PAGE = join(DOCS, "benchmarks.md")

const USAGE = `Usage: ./scripts/bench [NAME …] [--quick]

Measures Baton on both supported OpenCode versions and writes docs/benchmarks/ and the tables of docs/benchmarks.md.
All of it takes about an hour and a quarter on two cores; a quiet machine is needed for figures worth keeping.

${BENCHMARKS.map((name) => `  ${name.padEnd(10)} ${CATALOGUE[name].about}`).join("\n")}

  --quick    few rounds, printed only: to see that it works
  --help     this text
`

const say = (text: string): void => {
  process.stderr.write(`==> ${text}\n`)
}

const measure = async (name: BenchmarkName, quick: boolean): Promise<Measurement> => {
  const { requirement, measure: run } = CATALOGUE[name]
  const before = currentLoad()
  const machine = describeMachine()
  if (before > machine.cores) say(`the machine is busy (load ${before}); what is timed will be long and uncertain`)
  const measured = await run({ quick, say })
  const load = { before, after: currentLoad() }
  const takenAt = new Date().toISOString()
  return { requirement, takenAt, machine, load, ...measured }
}

const print = (measurement: Measurement): void => {
  for (const table of tablesOf(measurement)) console.log(`\n${table}`)
}

const save = (name: BenchmarkName, measurement: Measurement): void => {
  const stored: Results = existsSync(RESULTS)
    ? (JSON.parse(readFileSync(RESULTS, "utf8")) as Results)
    : { version: 1, measurements: {} }
  const measurements = { ...stored.measurements, [name]: measurement }
  const results: Results = {
    version: 1,
    measurements: Object.fromEntries(
      BENCHMARKS.flatMap((each) => (measurements[each] ? [[each, measurements[each]]] : [])),
    ),
  }
  mkdirSync(FOLDER, { recursive: true })
  writeFileSync(RESULTS, `${JSON.stringify(results, undefined, 2)}\n`)
  writeFileSync(PAGE, renderDocument(readFileSync(PAGE, "utf8"), results))
  for (const [file, text] of Object.entries(renderPlots(results))) writeFileSync(join(FOLDER, file), text)
  say(`${name} written to docs/benchmarks/ and docs/benchmarks.md`)
}

const parsed = parseArguments(process.argv.slice(2))
if (parsed.kind === "help") console.log(USAGE)
else if (parsed.kind === "wrong") {
  process.stderr.write(`error: ${parsed.reason}\n`)
  process.exitCode = 2
} else {
  for (const name of parsed.names) {
    say(`${name}: ${CATALOGUE[name].about}`)
    const measurement = await measure(name, parsed.quick)
    print(measurement)
    if (!parsed.quick) save(name, measurement)
  }
}
process.exit()
