import { describe, expect, test } from "vitest"
import { renderLinePlot } from "../../scripts/benchmarks/line-plot.ts"
import { soakPlots } from "../../scripts/benchmarks/soak/soak-plots.ts"
import { isFlat, isLetGo, type ServerRow, type SessionSoak } from "../../scripts/benchmarks/soak/soak-result.ts"
import { soakTables } from "../../scripts/benchmarks/soak/soak-tables.ts"
import { findTrend, firstAndLastTenth } from "../../scripts/benchmarks/soak/trend.ts"
import { createRandom } from "../support/random.ts"

const AT = Array.from({ length: 50 }, (_, index) => (index + 1) * 10)

const session = (values: readonly number[]): SessionSoak => ({
  version: "1.2.15",
  messages: 20_500,
  at: AT,
  lines: [{ what: "heap, the bundle's part", unit: "MB", values: [...values], below: 1 }],
})

const server: ServerRow = {
  version: "1.2.15",
  what: "child processes",
  unit: "",
  directories: 20,
  sessions: 200,
  before: 20,
  open: 20,
  deleted: 20,
  disposed: 0,
  below: 1,
}

describe("a trend", () => {
  test("of a straight line is its slope, without any spread", () => {
    expect(
      findTrend(
        AT,
        AT.map((at) => 3 + at / 4),
      ),
    ).toMatchObject({ slope: 0.25, low: 0.25, high: 0.25, n: 50 })
  })

  test("does not follow single values that are far off", () => {
    const spiked = AT.map((at, index) => (index % 9 === 0 ? 1_000 : 5 + at / 100))
    expect(findTrend(AT, spiked).slope).toBeCloseTo(0.01, 3)
  })

  test("of noise has zero within its bounds, and begins and ends with the medians of tenths", () => {
    const random = createRandom(7)
    const noise = AT.map(() => random())
    const { low, high } = findTrend(AT, noise)
    expect(low).toBeLessThan(0)
    expect(high).toBeGreaterThan(0)
    expect(findTrend(AT, AT)).toMatchObject({ first: 30, last: 480 })
  })

  test("needs two points, and as many values", () => {
    expect(() => findTrend([1], [1])).toThrow("two points")
    expect(() => findTrend([1, 2, 3], [1, 2])).toThrow("received 3 and 2")
  })

  test("first and last tenth are as long as each other", () => {
    expect(firstAndLastTenth([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12])).toEqual({ first: [1], last: [12] })
  })
})

describe("what a soak shows", () => {
  const flat = session(AT.map(() => 12))
  const growing = session(AT.map((at) => 12 + at / 50))

  test("a quantity that grows more than it may has missed its promise", () => {
    expect([flat, growing].map((soak) => soak.lines.map((line) => isFlat(soak, line)))).toEqual([[true], [false]])
    const text = soakTables({ sessions: [growing], servers: [server] }).join("\n")
    expect(text).toContain("500 compactions and 20,500 messages.")
    expect(text).toContain("| **+2 MB** | 2 … 2 | 50 | < +1 MB, **missed** |")
    expect(text).toContain("| child processes | 1.2.15 | 20 | 20 | 20 | 0 | < +1 |")
    expect(text).not.toContain("short run")
  })

  test("what a deleted session leaves counts against what was there before", () => {
    expect([server, { ...server, deleted: 21 }].map(isLetGo)).toEqual([true, false])
  })

  test("a run that is shorter than meant says so", () => {
    const short = { ...flat, at: AT.slice(0, 2), lines: [{ ...growing.lines[0], values: [1, 2] }] } as SessionSoak
    const text = soakTables({ sessions: [short], servers: [{ ...server, sessions: 6 }] }).join("\n")
    expect(text).toContain("20 compactions and 20,500 messages (**a short run**: 500 and 20,000 are meant)")
    expect(text).toContain("6 sessions in 20 directories (**a short run**: 200 in 20 are meant)")
  })

  test("is drawn by tenths, whatever the number of points", () => {
    expect(Object.keys(soakPlots({ sessions: [flat], servers: [] }))).toEqual([
      "soak-memory.svg",
      "soak-handles.svg",
      "soak-hook.svg",
      "soak-latency.svg",
    ])
    const [memory] = Object.values(soakPlots({ sessions: [flat], servers: [] }))
    expect(memory).toContain(">500</text>")
    expect(memory?.match(/<circle [^>]*class="mark a"/g)).toHaveLength(11)
  })

  test("a shorter run is drawn at the compactions it had", () => {
    const short = {
      ...flat,
      version: "1.18.33",
      at: AT.slice(0, 6),
      lines: [{ ...flat.lines[0], values: [1, 1, 1, 1, 1, 9] }],
    }
    const [memory] = Object.values(soakPlots({ sessions: [flat, short as SessionSoak], servers: [] }))
    // One in the legend, one for the first tenth, one for the second.
    expect(memory?.match(/<[a-z]+ [^>]*class="mark b"/g)).toHaveLength(3)
  })
})

test("a line plot goes below zero where its values do", () => {
  const svg = renderLinePlot({
    title: "T",
    description: "D",
    xAxis: "x",
    yAxis: "MB",
    xLabels: ["1", "2"],
    yMax: 10,
    panels: [{ title: "P", series: [{ name: "S", values: [-4, 8] }] }],
  })
  expect(svg).toContain(">-5</text>")
  const [[, points = ""] = []] = [...svg.matchAll(/<polyline points="([^"]*)"/g)]
  const ys = points.split(" ").map((point) => Number(point.split(",")[1]))
  const zero = Number(/y="([\d.]+)" class="quiet" text-anchor="end">0</.exec(svg)?.[1]) - 4
  expect(ys[0]).toBeGreaterThan(zero)
  expect(ys[1]).toBeLessThan(zero)
})
