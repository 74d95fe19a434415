import { readFileSync } from "node:fs"
import { join } from "node:path"
import { expect, test } from "vitest"
import { figureLine, isPrecise, renderDocument, sayPeers } from "../../scripts/benchmarks/page.ts"
import type { Results } from "../../scripts/benchmarks/results.ts"
import { promised } from "../requirements.ts"
import { scoreDetection } from "../support/learning-sets.ts"
import { NEWEST, OLDEST, REPOSITORY } from "../support/opencode/opencode-binary.ts"

const { measurements } = JSON.parse(
  readFileSync(join(REPOSITORY, "docs", "benchmarks", "results.json"), "utf8"),
) as Results
const page = readFileSync(join(REPOSITORY, "docs", "benchmarks.md"), "utf8")

test("the page shows what results.json says, and nothing of the machine but what it is", () => {
  const results: Results = { version: 1, measurements }
  expect(renderDocument(page, results)).toBe(page)
  for (const { machine } of Object.values(measurements))
    expect(Object.keys(machine).sort()).toEqual(["cores", "cpu", "memoryGiB", "system"])
  expect(JSON.stringify(results)).not.toMatch(/\/(?:home|root|tmp|work|Users)\b/)
})

test(promised("peers.C1", "the page says in words where another plugin is better than Baton"), () => {
  const [version, compactions] = ["1.18.33", 20]
  const rows = [
    { version, compactions, subject: "plain OpenCode", facts: 20, named: 0, start: 1 },
    { version, compactions, subject: "Baton", facts: 20, named: 20, start: 1.02 },
    { version, compactions, subject: "faster@1.0.0", facts: 0, named: 0, start: 1.01 },
    { version, subject: "broken@1.0.0", failure: "OpenCode cannot load it" },
  ]
  expect(sayPeers(rows)).toBe("- Where another plugin is better than Baton on 1.18.33: faster@1.0.0 starts faster.")
  expect(sayPeers(rows.slice(0, 2))).toContain("on 1.18.33: nowhere in this table.")
})

const LIMITS = `load.fresh load.run start.ratio start.task-ratio start.asked-ratio start.asked-task-ratio event.delta
  transcript.time.10000 transcript.memory.10000 live.published live.ignored live.to-file live.growth
  soak.hook-ratio soak.added-ratio soak.gained.heapMB soak.gained.collections soak.gained.journals soak.gained.state`

// What only a measurement can show: no change of the product can fail this.
test(promised(["speed.G1", "speed.G3", "handoff.D4", "live-state.D3", "soak.B3"], "each limit is told"), () => {
  const figures = Object.values(measurements).flatMap((measured) => measured.figures)
  for (const { version } of [OLDEST, NEWEST])
    for (const id of LIMITS.split(/\s+/)) {
      const figure = figures.find((each) => each.id === id && each.version === version)
      if (figure?.below === undefined) throw new Error(`results.json has no limit of ${id} on ${version}`)
      expect(page, id).toContain(`\n${figureLine(figure)}\n`)
      expect(figureLine(figure).endsWith(", **missed** |"), id).toBe(figure.median >= figure.below)
    }
})

test(promised("speed.G5", "no run with Baton lost the task, nor a fact where the summariser keeps them"), () => {
  const rows = measurements.retention?.retention ?? []
  expect(new Set(rows.map(({ version, bundle }) => `${bundle} ${version}`)).size).toBe(4)
  for (const row of rows.filter(({ bundle }) => bundle === "baton")) {
    expect([row.compacted, row.turnsKnowingTask]).toEqual([row.compactions, row.turns])
    if (row.summariser === "faithful") expect(row.factsKept).toBe(row.compactions)
  }
})

test(
  promised(["learning.A3", "people.B1"], "precision and recall are published as the sets give them now, and are kept"),
  () => {
    const now = scoreDetection()
    expect(measurements.learning?.detection).toEqual(now)
    expect(now.filter((row) => !isPrecise(row))).toEqual([])
  },
)
