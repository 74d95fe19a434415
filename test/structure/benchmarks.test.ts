import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { expect, test } from "vitest"
import { figureLine, isPrecise, renderDocument } from "../../scripts/benchmarks/page.ts"
import { renderPictures } from "../../scripts/benchmarks/pictures.ts"
import type { Results } from "../../scripts/benchmarks/results.ts"
import { promised } from "../requirements.ts"
import { LEARNING_SETS, scoreLearningSet } from "../support/learning-sets.ts"
import { NEWEST, OLDEST, REPOSITORY } from "../support/opencode/opencode-binary.ts"

const FOLDER = join(REPOSITORY, "docs", "benchmarks")
const { measurements } = JSON.parse(readFileSync(join(FOLDER, "results.json"), "utf8")) as Results
const page = readFileSync(join(REPOSITORY, "docs", "benchmarks.md"), "utf8")

test("the page and the pictures show what results.json says, and nothing of the machine but what it is", () => {
  const results: Results = { version: 1, measurements }
  expect(renderDocument(page, results)).toBe(page)
  const pictures = Object.entries(renderPictures(results))
  expect(readdirSync(FOLDER).sort()).toEqual([...pictures.map(([file]) => file), "results.json"].sort())
  for (const [file, text] of pictures) {
    expect(readFileSync(join(FOLDER, file), "utf8"), file).toBe(text)
    expect(page, file).toContain(`(benchmarks/${file})`)
  }
  for (const { machine } of Object.values(measurements))
    expect(Object.keys(machine).sort()).toEqual(["cores", "cpu", "memoryGiB", "system"])
  expect(JSON.stringify(results)).not.toMatch(/\/(?:home|root|tmp|work|Users)\b/)
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

test(promised("learning.A3", "precision and recall are published as the sets give them now, and are kept"), () => {
  const now = LEARNING_SETS.map((set) => {
    const { messages, labels, stored, precision, recall, rightType } = scoreLearningSet(set)
    return { set, messages, labels, stored, precision, recall, rightType }
  })
  expect(measurements.learning?.detection).toEqual(now)
  expect(now.filter((row) => !isPrecise(row))).toEqual([])
})
