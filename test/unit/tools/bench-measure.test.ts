import { expect, test } from "vitest"
import { median, pairRatios, toFigure } from "../../../scripts/benchmarks/measure.ts"
import { sayPeers } from "../../../scripts/benchmarks/page.ts"
import { promised } from "../../requirements.ts"

test.each([
  [5, {}],
  [6, { low: 1, high: 6 }],
  [20, { low: 6, high: 15 }],
])("the median of 1 … %i is bounded by order statistics", (n, bounds) => {
  const values = Array.from({ length: n }, (_, index) => n - index)
  const extremes = { n, median: (n + 1) / 2, min: 1, max: n }
  expect(toFigure("id", "what", "ms", values)).toEqual({ id: "id", what: "what", unit: "ms", ...extremes, ...bounds })
})

test("a ratio is that of a pair, which a machine that slows down does not bend", () => {
  expect(median(pairRatios([1, 1, 10, 10, 10], [2, 2, 2, 20, 20]))).toBe(2)
})

test(promised("peers.C1", "it is said in words where another plugin is better than Baton"), () => {
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
