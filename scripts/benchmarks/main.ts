/** `main.ts [NAME …] [--quick]`: see USAGE. Runs on Bun: scripts/bench starts it on the OpenCode binary. */
import { readFileSync, writeFileSync } from "node:fs"
import { arch, cpus, loadavg, release, totalmem, type } from "node:os"
import { join } from "node:path"
import type { RequirementId } from "../../test/requirements.ts"
import {
  BOTH_ENDS,
  HAS_OPENCODE_2,
  NEWEST,
  type OpenCodeBinary,
  openCode2,
  REPOSITORY,
} from "../../test/support/opencode/opencode-binary.ts"
import { measureClaims } from "./claims.ts"
import { toFigure } from "./measure.ts"
import { measureObserve } from "./observe.ts"
import { measureBeginnings2, measureHook2, measureStart2, measureSurvival } from "./opencode-2.ts"
import { renderDocument, tablesOf } from "./page.ts"
import { measurePass } from "./pass.ts"
import { measurePeers } from "./peers.ts"
import { measureAudit, measureLedger, measureLoad, measureStart } from "./processes.ts"
import { measureAdditions, measureBeginnings, measureRetentionTable, measureTokens } from "./requests.ts"
import type { Benchmark, Context, Measurement, Results, Tables } from "./results.ts"
import { measureEvent, measureLearning, measureLiveState } from "./runtime.ts"
import { measureHook, measureTranscript } from "./sessions.ts"
import { measureSoak } from "./soak.ts"
import { measureTuiDrafts } from "./tui-draft.ts"
import { measureLaterWords } from "./words.ts"

/** Runs on both ends of OpenCode unless `ends` is given. */
type Entry = readonly [requirement: RequirementId, about: string, run: Benchmark, ends?: readonly OpenCodeBinary[]]

const LINE_2 = HAS_OPENCODE_2 ? [openCode2()] : []

const CATALOGUE: Readonly<Record<string, Entry>> = {
  load: ["speed.G1", "import and init of the bundle", measureLoad],
  start: ["speed.G1", "`opencode run` with and without the bundle", measureStart],
  hook: ["speed.G2", "the compacting hook at 10 to 10,000 messages", measureHook],
  event: ["speed.G3", "an event the bundle does not need", measureEvent],
  ledger: ["speed.G4", "the embedded prog log", measureLedger],
  claims: ["queue.A3", "eight workers that take tasks from one queue", measureClaims],
  retention: ["speed.G5", "what 1 to 50 compactions leave", measureRetentionTable],
  words: ["words.A2", "what 50 compactions leave of later instructions, beside other plugins", measureLaterWords],
  beginnings: ["start.A2", "what a first request, and one after kill -9, are told", measureBeginnings],
  "opencode-2": [
    "v2.C2",
    "what 50 compactions leave on OpenCode 2, where a summary can end the session",
    measureSurvival,
    LINE_2,
  ],
  "opencode-2-beginnings": [
    "v2.C2",
    "what a first request, and one after kill -9, are told on OpenCode 2",
    measureBeginnings2,
    LINE_2,
  ],
  "opencode-2-start": ["v2.C2", "`run --standalone` of OpenCode 2 with and without the bundle", measureStart2, LINE_2],
  "opencode-2-hook": ["v2.C2", "a request's hook and an event on OpenCode 2", measureHook2, LINE_2],
  tokens: ["tokens.C2", "what each feature adds to a request", measureTokens],
  additions: ["speed.G5", "the most that a task adds", measureAdditions],
  peers: ["peers.C1", "Baton beside other plugins, on the same work", measurePeers],
  transcript: ["handoff.D4", "reading a session of 10,000 messages", measureTranscript],
  "live-state": ["live-state.D3", "what the live state costs, and how old it is", measureLiveState],
  // The oldest OpenCode's TUI drops keys typed while it draws (see tui.ts).
  "tui-draft": ["handoff.B2", "50 handoffs in the real TUI", measureTuiDrafts, [NEWEST]],
  observe: ["live-state.C3", "watching 50 agents on the page", measureObserve],
  learning: ["learning.A3", "what is learned from labelled messages", measureLearning],
  audit: ["pass-over.G3", "a query over 100,000 lines of the audit", measureAudit],
  pass: ["pass-over.G3", "a pass over a plain child session", measurePass],
  soak: ["soak.B3", "500 compactions of one session", measureSoak],
}
const NAMES = Object.keys(CATALOGUE)
const LINES = Object.entries(CATALOGUE).map(([name, [, about]]) => `  ${name.padEnd(22)} ${about}`)

const USAGE = `Usage: ./scripts/bench [NAME …] [--quick]

Measures Baton on both supported OpenCode versions and writes docs/benchmarks/ and the tables of docs/benchmarks.md.
All of it takes about an hour and a quarter on two cores; a quiet machine is needed for figures worth keeping.

${LINES.join("\n")}

  --quick    few rounds, printed only: to see that it works
  --help     this text
`

const RESULTS = join(REPOSITORY, "docs", "benchmarks", "results.json")
const PAGE = join(REPOSITORY, "docs", "benchmarks.md")

const say = (text: string): void => void process.stderr.write(`==> ${text}\n`)

/** Load average of the last minute, to one decimal. */
const currentLoad = (): number => Math.round((loadavg()[0] ?? 0) * 10) / 10

const measure = async (name: string, [requirement, , run, ends = BOTH_ENDS]: Entry, quick: boolean) => {
  const [cores, memoryGiB, before] = [cpus().length, Math.round(totalmem() / 2 ** 30), currentLoad()]
  const cpu = cpus()[0]?.model.trim() ?? "unknown"
  const machine = { cpu, cores, memoryGiB, system: `${type()} ${release()} ${arch()}` }
  if (before > cores) say(`the machine is busy (load ${before}); what is timed will be long and uncertain`)
  const tables: Tables = { figures: [] }
  for (const binary of ends) {
    say(`${name} on ${binary.version}`)
    const figure: Context["figure"] = (...about) =>
      void tables.figures.push({ version: binary.version, ...toFigure(...about) })
    const row: Context["row"] = (kind, row) => void Object.assign(tables, { [kind]: [...(tables[kind] ?? []), row] })
    await run({ binary, quick, figure, row, say: (text) => say(`${name} on ${binary.version}: ${text}`) })
  }
  const load = { before, after: currentLoad() }
  return { requirement, takenAt: new Date().toISOString(), machine, load, ...tables }
}

const save = (name: string, measurement: Measurement): void => {
  const stored = JSON.parse(readFileSync(RESULTS, "utf8")) as Results
  const all = { ...stored.measurements, [name]: measurement }
  const inOrder = NAMES.flatMap((each) => (all[each] ? [[each, all[each]] as const] : []))
  const results: Results = { version: 1, measurements: Object.fromEntries(inOrder) }
  writeFileSync(RESULTS, `${JSON.stringify(results, undefined, 2)}\n`)
  writeFileSync(PAGE, renderDocument(readFileSync(PAGE, "utf8"), results))
  say(`${name} written to docs/benchmarks/ and docs/benchmarks.md`)
}

const words = process.argv.slice(2)
const quick = words.includes("--quick")
const wanted = words.filter((word) => word !== "--quick")
const wrong = wanted.find((word) => !NAMES.includes(word))
if (words.includes("--help") || words.includes("-h")) console.log(USAGE)
else if (wrong !== undefined) {
  process.stderr.write(`error: unknown argument ${wrong}; expected --quick, --help or: ${NAMES.join(" ")}\n`)
  process.exitCode = 2
} else
  for (const [name, entry] of Object.entries(CATALOGUE)) {
    if (wanted.length > 0 && !wanted.includes(name)) continue
    say(`${name}: ${entry[1]}`)
    const measurement = await measure(name, entry, quick)
    for (const table of tablesOf(measurement)) console.log(`\n${table}`)
    if (!quick) save(name, measurement)
  }
process.exit()
