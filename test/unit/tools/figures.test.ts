import { readFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { median, pairRatios, toFigure } from "../../../scripts/benchmarks/measure.ts"
import { sayPeers } from "../../../scripts/benchmarks/page.ts"
import { renderTerminal } from "../../../scripts/demonstration/terminal-picture.ts"
import { promised } from "../../requirements.ts"
import { REPOSITORY } from "../../support/opencode/opencode-binary.ts"

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

test("a picture has texts as wide as their columns, backgrounds, and no markup of the screen's", () => {
  const screen = "ab  <b>&\n   ██\u001b[48;2;30;30;30mx"
  const svg = renderTerminal("A picture", { caption: "A <terminal>", screen })
  expect(svg).toContain('x="0" y="12.5" textLength="64" fill="#eeeeee">ab  &lt;b&gt;&amp;<')
  expect(svg).toContain('x="24" y="28.5" textLength="16" fill="#eeeeee">██<')
  expect(svg).toContain('<rect x="40" y="16" width="8" height="16" fill="#1e1e1e"/>')
  expect(svg).toContain("A &lt;terminal&gt;")
})

describe.each(["demo.svg", "handoff.svg"])("docs/images/%s", (name) => {
  const svg = readFileSync(join(REPOSITORY, "docs", "images", name), "utf8")

  test(promised(["handoff.E3", "install.E3"], "is small, needs nothing from elsewhere, names no user's folder"), () => {
    expect(Buffer.byteLength(svg)).toBeLessThan(100_000)
    expect(svg.replace('xmlns="http://www.w3.org/2000/svg"', "")).not.toMatch(/https?:|href|url\(|@import|@font-face/)
    expect(svg).not.toMatch(/\/(?:home|root|work|Users|var|private)\//)
    expect(Number(/ width="(\d+)"/.exec(svg)?.[1])).toBeLessThanOrEqual(860)
  })
})

test(promised("handoff.E3", "the picture of /handoff shows the draft with its toast, and its message"), () => {
  const svg = readFileSync(join(REPOSITORY, "docs", "images", "handoff.svg"), "utf8")
  for (const text of ["Handoff Ready", "Continuing work from session", "gathered by program", "~/my-project"])
    expect(svg).toContain(text)
})
