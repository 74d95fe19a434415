import { lineBetween, renderSvg, TONES, textAt } from "./svg.ts"

export type Bar = {
  name: string
  /** A share of the limit, 1 = the limit itself. */
  value: number
  /** Bounds of the value, drawn as a whisker. */
  low?: number
  high?: number
  /** What stands beside the bar. */
  label: string
  /** Which of the groups of the legend this belongs to. */
  group: number
}

export type BarPlot = {
  title: string
  description: string
  xAxis: string
  groups: readonly string[]
  bars: readonly Bar[]
}

const WIDTH = 760
const LEFT = 330
const RIGHT = 110
const TOP = 76
const BAR_HEIGHT = 20
const TICK = 0.25
/** Whatever is further beyond the limit would make all others too small to be compared. */
const LARGEST = 3

/** Horizontal bars against a common limit, from nothing to three times that, as the text of an SVG file. */
export const renderBarPlot = ({ title, description, xAxis, groups, bars }: BarPlot): string => {
  const largest = Math.min(LARGEST, Math.max(1, ...bars.map(({ value, high = value }) => Math.max(value, high))))
  const end = Math.ceil(largest / TICK) * TICK
  const step = end > 2 ? Math.ceil(end / 8 / TICK) * TICK : TICK
  const xOf = (value: number) => LEFT + (Math.min(Math.max(value, 0), end) / end) * (WIDTH - LEFT - RIGHT)
  const lower = TOP + bars.length * BAR_HEIGHT + 6
  const ticks = Array.from({ length: Math.floor(end / step + 1e-9) + 1 }, (_, index) => index * step)
  const toneOf = (group: number) => TONES[group % TONES.length] ?? "a"
  return renderSvg({ width: WIDTH, height: lower + 46, title, description }, [
    ...groups.flatMap((name, group) => [
      `<rect x="${16 + group * 150}" y="42" width="12" height="12" class="mark ${toneOf(group)}"/>`,
      textAt({ x: 34 + group * 150, y: 52 }, name),
    ]),
    ...ticks.flatMap((value) => [
      lineBetween({ x: xOf(value), y: TOP - 4 }, { x: xOf(value), y: lower }, "rule"),
      textAt({ x: xOf(value), y: lower + 16 }, `${Math.round(value * 100)} %`, {
        className: "quiet",
        anchor: "middle",
      }),
    ]),
    textAt({ x: (LEFT + WIDTH - RIGHT) / 2, y: lower + 36 }, xAxis, { anchor: "middle" }),
    ...bars.flatMap(({ name, value, low = value, high = value, label, group }, index) => {
      const y = TOP + index * BAR_HEIGHT
      const middle = y + 8
      return [
        textAt({ x: LEFT - 8, y: y + 12 }, name, { anchor: "end" }),
        `<rect x="${LEFT}" y="${y + 2}" width="${Math.max(xOf(value) - LEFT, 1).toFixed(1)}" height="12" class="mark ${toneOf(group)}"/>`,
        ...(high > low ? [lineBetween({ x: xOf(low), y: middle }, { x: xOf(high), y: middle }, "whisker")] : []),
        textAt(
          { x: Math.max(xOf(value), xOf(high)) + 6, y: y + 12 },
          value > end ? `${label} (${value.toFixed(1)}×)` : label,
          { className: "quiet" },
        ),
      ]
    }),
    lineBetween({ x: xOf(1), y: TOP - 4 }, { x: xOf(1), y: lower }, "limit", true),
    textAt({ x: xOf(1), y: TOP - 8 }, "limit", { className: "limit-text", anchor: "middle" }),
  ])
}
