import { describe, expect, test } from "vitest"
import { renderBarPlot } from "../../scripts/benchmarks/bar-plot.ts"
import { renderLinePlot, roundUp } from "../../scripts/benchmarks/line-plot.ts"

const PLOT = {
  title: "Faster & <better>",
  description: "A picture.",
  xAxis: "messages",
  yAxis: "ms",
  xLabels: ["10", "1,000"],
  yMax: 20,
  limit: { value: 15, name: "promised" },
  panels: [
    {
      title: "Hook",
      series: [
        { name: "1.2.15", values: [5, 10] },
        { name: "1.18.33", values: [5, 10], dashed: true },
      ],
    },
  ],
}

const BARS = {
  title: "Shares",
  description: "A picture.",
  xAxis: "share of the limit",
  groups: ["1.2.15", "1.18.33"],
  bars: [
    { name: "half", value: 0.5, low: 0.4, high: 0.6, label: "5 ms", group: 0 },
    { name: "over", value: 1.5, label: "15 ms", group: 1 },
  ],
}

const linesOf = (svg: string): { x: number; y: number }[][] =>
  [...svg.matchAll(/<polyline points="([^"]*)"/g)].map(([, points = ""]) =>
    points.split(" ").map((point) => {
      const [x = Number.NaN, y = Number.NaN] = point.split(",").map(Number)
      return { x, y }
    }),
  )

const limitY = (svg: string): number => Number(/<line [^>]*y1="([\d.]+)"[^>]*class="limit"/.exec(svg)?.[1])

describe.each([
  ["line plot", renderLinePlot(PLOT)],
  ["bar plot", renderBarPlot(BARS)],
])("a %s", (_kind, svg) => {
  test("has colours for a light and a dark page and fetches nothing", () => {
    expect(svg).toContain("@media (prefers-color-scheme: dark)")
    expect(svg).toContain("system-ui")
    expect(svg.replace('xmlns="http://www.w3.org/2000/svg"', "")).not.toMatch(/https?:|url\(|@import|<image|<script/)
  })

  test("is well formed as far as opened and closed elements go, and is described in words", () => {
    const opened = [...svg.matchAll(/<(\w+)(?:\s[^>]*[^/])?>/g)].map(([, name = ""]) => name)
    const closed = [...svg.matchAll(/<\/(\w+)>/g)].map(([, name = ""]) => name)
    expect(opened.toSorted()).toEqual(closed.toSorted())
    expect(svg).toMatch(/<title>.+<\/title>\n<desc>A picture\.<\/desc>/)
  })
})

describe("renderLinePlot", () => {
  const svg = renderLinePlot(PLOT)

  test("labels both axes, every x value, the panel, the series and the limit", () => {
    for (const text of ["messages", "ms", "10", "1,000", "Hook", "1.2.15", "1.18.33", "promised"]) {
      expect(svg).toContain(`>${text}</text>`)
    }
  })

  test("escapes what would be markup", () => {
    expect(svg).toContain("Faster &amp; &lt;better&gt;")
    expect(svg).not.toContain("<better>")
  })

  test("puts larger values higher, in proportion, and the limit where its value is", () => {
    const [[low, high] = []] = linesOf(svg)
    if (!low || !high) throw new Error("expected a line of two points")
    expect(high.y).toBeLessThan(low.y)
    expect(high.x).toBeGreaterThan(low.x)
    // Ticks end at 20: from 5 to 10 is as far as from 10 to 15.
    expect(high.y - limitY(svg)).toBeCloseTo(low.y - high.y, 0)
  })

  test("moves lines with equal values apart, so that each is seen", () => {
    const [first = [], second = []] = linesOf(svg)
    expect(second.map(({ y }) => y)).toEqual(first.map(({ y }) => y))
    for (const [index, { x }] of second.entries()) expect(x - (first[index]?.x ?? x)).toBeGreaterThan(4)
  })

  test("leaves a gap for a missing value instead of drawing zero", () => {
    const gap = { ...PLOT, panels: [{ title: "Hook", series: [{ name: "1.2.15", values: [null, 10] }] }] }
    expect(linesOf(renderLinePlot(gap))[0]).toHaveLength(1)
  })

  test("makes room for values above the expected maximum", () => {
    const high = { ...PLOT, panels: [{ title: "Hook", series: [{ name: "1.2.15", values: [5, 400] }] }] }
    for (const { y } of linesOf(renderLinePlot(high)).flat()) expect(y).toBeGreaterThan(0)
  })
})

test.each([
  [0.3, 0.5],
  [1, 1],
  [7.5, 10],
  [11, 20],
  [23, 25],
  [0, 1],
])("a tick of at least %d is %d", (value, tick) => {
  expect(roundUp(value)).toBeCloseTo(tick)
})

describe("renderBarPlot", () => {
  const svg = renderBarPlot(BARS)

  test("draws bars in proportion, with the limit at 100 %", () => {
    const [half = 0, over = 0] = [...svg.matchAll(/<rect x="330" y="\d+" width="([\d.]+)"/g)].map(([, width]) =>
      Number(width),
    )
    expect(over / half).toBeCloseTo(3, 1)
    const limit = Number(/<line x1="([\d.]+)"[^>]*class="limit"/.exec(svg)?.[1])
    expect(limit - 330).toBeCloseTo(half * 2, 0)
  })

  test("names every bar with its value, and draws a whisker where there is an interval", () => {
    for (const text of ["half", "over", "5 ms", "15 ms", "100 %"]) expect(svg).toContain(`>${text}</text>`)
    expect(svg.match(/class="whisker"/g)).toHaveLength(1)
  })
})

test("a bar plot leaves out what is below nothing and cuts off what is far beyond the limit, and says so", () => {
  const bars = [
    { name: "won", value: -7, low: -9, high: -5, label: "-350 ms", group: 0 },
    { name: "far", value: 14, label: "700 ms", group: 0 },
    { name: "half", value: 0.5, label: "25 ms", group: 0 },
  ]
  const svg = renderBarPlot({ ...BARS, bars })
  const widths = [...svg.matchAll(/width="([\d.]+)" height="12" class="mark/g)]
    .map(([, width]) => Number(width))
    .slice(-3)
  expect(widths[0]).toBe(1)
  expect((widths[1] ?? 0) / (widths[2] ?? 1)).toBeCloseTo(6, 1)
  expect(svg).toContain("700 ms (14.0×)")
  expect(svg).not.toMatch(/ (?:x\d?|width)="-/)
})
