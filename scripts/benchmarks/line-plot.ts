import { lineBetween, markAt, type Point, pathThrough, renderSvg, TONES, type Tone, textAt } from "./svg.ts"

export type Series = {
  name: string
  /** One value for each of the plot's x labels; null where there is none. */
  values: readonly (number | null)[]
  dashed?: boolean
}

export type LinePlot = {
  title: string
  description: string
  xAxis: string
  yAxis: string
  xLabels: readonly string[]
  /** The y axis ends here or at the largest value, whichever is higher; it begins at 0 or below the smallest. */
  yMax: number
  /** A promise to stay under, drawn as a line. */
  limit?: { value: number; name: string }
  /** Small multiples with the same axes and series, two in a row. */
  panels: readonly { title: string; series: readonly Series[] }[]
}

const WIDTH = 760
const PANEL_HEIGHT = 220
const TOP = 44
const LEGEND_HEIGHT = 34
const MARGIN = { left: 56, right: 20, top: 28, bottom: 44 }
const TICKS = 4
/** Lines that lie on each other are moved apart by this many pixels, so that each is seen. */
const DODGE = 11

/** The next of 1, 2, 2.5, 5 × 10^n, for round ticks. */
export const roundUp = (value: number): number => {
  if (!(value > 0)) return 1
  const power = 10 ** Math.floor(Math.log10(value))
  const step = [1, 2, 2.5, 5, 10].find((candidate) => candidate * power >= value * (1 - 1e-9))
  return (step ?? 10) * power
}

const toneOf = (index: number): Tone => TONES[index % TONES.length] ?? "a"

/** A line plot with labelled axes, as the text of an SVG file. */
export const renderLinePlot = (plot: LinePlot): string => {
  const { title, description, xAxis, yAxis, xLabels, limit, panels } = plot
  const columns = Math.min(panels.length, 2)
  const rows = Math.ceil(panels.length / columns)
  const panelWidth = WIDTH / columns
  const every = panels.flatMap(({ series }) => series.flatMap(({ values }) => values.filter((value) => value !== null)))
  const highest = Math.max(plot.yMax, ...every, limit?.value ?? 0)
  const lowest = Math.min(0, ...every)
  const step = roundUp((highest - lowest) / TICKS)
  const below = Math.ceil(-lowest / step)
  const above = below === 0 ? TICKS : Math.ceil(highest / step)
  const bottom = -below * step
  const span = (above + below) * step
  const names = panels[0]?.series ?? []

  const drawPanel = (panel: LinePlot["panels"][number], at: Point): string[] => {
    const left = at.x + MARGIN.left
    const right = at.x + panelWidth - MARGIN.right
    const upper = at.y + MARGIN.top
    const lower = at.y + PANEL_HEIGHT - MARGIN.bottom
    const xOf = (index: number) => left + ((index + 0.5) / xLabels.length) * (right - left)
    const yOf = (value: number) => lower - ((value - bottom) / span) * (lower - upper)
    const ticks = Array.from({ length: above + below + 1 }, (_, tick) => (tick - below) * step)
    return [
      textAt({ x: left, y: at.y + 16 }, panel.title, { className: "ink head" }),
      ...ticks.flatMap((value) => [
        lineBetween({ x: left, y: yOf(value) }, { x: right, y: yOf(value) }, "rule"),
        textAt({ x: left - 6, y: yOf(value) + 4 }, value.toLocaleString("en"), { className: "quiet", anchor: "end" }),
      ]),
      ...xLabels.map((label, index) =>
        textAt({ x: xOf(index), y: lower + 18 }, label, { className: "quiet", anchor: "middle" }),
      ),
      textAt({ x: (left + right) / 2, y: lower + 36 }, xAxis, { anchor: "middle" }),
      textAt({ x: at.x + 14, y: (upper + lower) / 2 }, yAxis, { anchor: "middle", turned: true }),
      ...(limit
        ? [
            lineBetween({ x: left, y: yOf(limit.value) }, { x: right, y: yOf(limit.value) }, "limit", true),
            textAt({ x: right, y: yOf(limit.value) - 5 }, limit.name, { className: "limit-text", anchor: "end" }),
          ]
        : []),
      ...panel.series.flatMap(({ values, dashed = false }, index) => {
        const shift = (index - (panel.series.length - 1) / 2) * DODGE
        const points = values.flatMap((value, x) => (value === null ? [] : [{ x: xOf(x) + shift, y: yOf(value) }]))
        return [pathThrough(points, toneOf(index), dashed), ...points.map((point) => markAt(point, toneOf(index)))]
      }),
    ]
  }

  const legendWidth = (WIDTH - 32) / Math.max(names.length, 1)
  const legend = names.flatMap(({ name }, index) => {
    const x = 22 + index * legendWidth
    return [markAt({ x, y: TOP + 8 }, toneOf(index)), textAt({ x: x + 10, y: TOP + 12 }, name)]
  })
  const height = TOP + LEGEND_HEIGHT + rows * PANEL_HEIGHT
  const body = panels.flatMap((panel, index) =>
    drawPanel(panel, {
      x: (index % columns) * panelWidth,
      y: TOP + LEGEND_HEIGHT + Math.floor(index / columns) * PANEL_HEIGHT,
    }),
  )
  return renderSvg({ width: WIDTH, height, title, description }, [...legend, ...body])
}
