import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { expect, test } from "vitest"
import { renderDocument } from "../../scripts/benchmarks/document.ts"
import { sayPeers } from "../../scripts/benchmarks/peer-tables.ts"
import { renderPlots } from "../../scripts/benchmarks/plots.ts"
import {
  type BenchmarkName,
  isPrecise,
  keepsEverything,
  type Measurement,
  meetsTarget,
  type Results,
} from "../../scripts/benchmarks/results.ts"
import { promised } from "../requirements.ts"
import { LEARNING_SETS, scoreLearningSet } from "../support/learning-sets.ts"
import { BOTH_ENDS, REPOSITORY } from "../support/opencode-binary.ts"

const DOCS = join(REPOSITORY, "docs")
const FOLDER = join(DOCS, "benchmarks")
const results = JSON.parse(readFileSync(join(FOLDER, "results.json"), "utf8")) as Results
const page = readFileSync(join(DOCS, "benchmarks.md"), "utf8")

const measured = (name: BenchmarkName): Measurement => {
  const found = results.measurements[name]
  if (!found) throw new Error(`results.json has no ${name}; run ./scripts/bench ${name}`)
  return found
}

test("the page and the pictures show what results.json says, and nothing of the machine but what it is", () => {
  expect(renderDocument(page, results)).toBe(page)
  const plots = renderPlots(results)
  expect(
    readdirSync(FOLDER)
      .filter((file) => file.endsWith(".svg"))
      .sort(),
  ).toEqual(Object.keys(plots).sort())
  for (const [file, text] of Object.entries(plots)) {
    expect(readFileSync(join(FOLDER, file), "utf8"), file).toBe(text)
    expect(page, file).toContain(`(benchmarks/${file})`)
  }
  for (const { machine } of Object.values(results.measurements))
    expect(Object.keys(machine).sort()).toEqual(["cores", "cpu", "memoryGiB", "system"])
  expect(JSON.stringify(results)).not.toMatch(/\/(?:home|root|tmp|work|Users)\b/)
})

/** Promised figures that only a measurement can show. */
const PROMISED: readonly (readonly [BenchmarkName, ...string[]])[] = [
  ["load", "load.run"],
  ["start", "start.asked-ratio", "start.asked-task-ratio"],
  ["event", "event.delta"],
  ["transcript", "transcript.time.10000", "transcript.memory.10000"],
  ["live-state", "live.published", "live.ignored", "live.to-file", "live.growth"],
]

// No change of the product can fail this: it holds that the promise was kept when it was measured last.
test(
  promised(
    ["speed.G1", "speed.G3", "speed.G5", "handoff.D4", "live-state.D3", "peers.C1"],
    "what only a measurement can show was measured on both ends and was kept",
  ),
  () => {
    for (const { version } of BOTH_ENDS) {
      for (const [name, ...ids] of PROMISED)
        for (const id of ids) {
          const figure = measured(name).figures.find((each) => each.id === id && each.version === version)
          expect(figure && meetsTarget(figure), `${id} on ${version}`).toBe(true)
        }
      const retention = measured("retention").retention?.filter((row) => row.version === version) ?? []
      expect(new Set(retention.map(({ bundle }) => bundle))).toEqual(new Set(["plain", "baton"]))
      expect(retention.filter((row) => row.bundle === "baton" && !keepsEverything(row))).toEqual([])
    }
    const { figures, peers } = measured("peers")
    expect(peers && page.includes(sayPeers(figures, peers))).toBe(true)
  },
)

test(promised("learning.A3", "precision and recall are published as the sets give them now, and are kept"), () => {
  const now = LEARNING_SETS.map((set) => {
    const { messages, labels, stored, precision, recall, rightType } = scoreLearningSet(set)
    return { set, messages, labels, stored, precision, recall, rightType }
  })
  expect(measured("learning").detection).toEqual(now)
  expect(now.filter((row) => !isPrecise(row))).toEqual([])
})
