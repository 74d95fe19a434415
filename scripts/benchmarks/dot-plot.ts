import { lineBetween, markAt, type Point, renderSvg, TONES, type Tone, textAt } from "./svg.ts"

export type Dot = { row: number; group: number; value: number; low: number; high: number; label: string }

export type DotPlot = {
  title: string
  description: string
  /** The legend: one tone and shape each. */
  groups: readonly string[]
  /** Names beside the rows, the same in each panel. */
  rows: readonly string[]
  /** Small multiples, two in a row, each with an axis of its own and a line at what all are compared with. */
  panels: readonly { title: string; zero: { value: number; name: string }; dots: readonly Dot[] }[]
}

const WIDTH = 760
const TOP = 76
const ROW_HEIGHT = 34
const PANEL_TOP = 40
const PANEL_BOTTOM = 14
const LEFT = 124
const RIGHT = 16
/** Room for a label on the far side of its dot. */
const LABEL_WIDTH = 74
const COLUMNS = 2

const toneOf = (group: number): Tone => TONES[group % TONES.length] ?? "a"

/** Values with their intervals against a common line, as the text of an SVG file. */
export const renderDotPlot = ({ title, description, groups, rows, panels }: DotPlot): string => {
  const panelWidth = WIDTH / COLUMNS
  const panelHeight = PANEL_TOP + rows.length * ROW_HEIGHT + PANEL_BOTTOM

  const drawPanel = ({ title: head, zero, dots }: DotPlot["panels"][number], at: Point): string[] => {
    const ends = [zero.value, ...dots.flatMap(({ low, high, value }) => [low, high, value])]
    const least = Math.min(...ends)
    const span = Math.max(...ends) - least || 1
    const left = at.x + LEFT
    const right = at.x + panelWidth - RIGHT - LABEL_WIDTH
    const xOf = (value: number) => left + ((value - least) / span) * (right - left)
    const upper = at.y + PANEL_TOP
    const lower = upper + rows.length * ROW_HEIGHT
    return [
      textAt({ x: at.x + 16, y: at.y + 14 }, head, { className: "ink head" }),
      lineBetween({ x: xOf(zero.value), y: upper - 6 }, { x: xOf(zero.value), y: lower }, "limit", true),
      textAt({ x: xOf(zero.value), y: upper - 10 }, zero.name, { className: "limit-text", anchor: "start" }),
      ...rows.flatMap((name, row) => {
        const y = upper + row * ROW_HEIGHT
        return [
          lineBetween({ x: left, y }, { x: at.x + panelWidth - RIGHT, y }, "rule"),
          textAt({ x: left - 8, y: y + ROW_HEIGHT / 2 + 4 }, name, { anchor: "end" }),
        ]
      }),
      ...dots.flatMap(({ row, group, value, low, high, label }) => {
        const y = upper + row * ROW_HEIGHT + ((group + 0.5) / groups.length) * ROW_HEIGHT
        return [
          ...(high > low ? [lineBetween({ x: xOf(low), y }, { x: xOf(high), y }, "whisker")] : []),
          markAt({ x: xOf(value), y }, toneOf(group)),
          textAt({ x: Math.max(xOf(high), xOf(value)) + 8, y: y + 4 }, label, { className: "quiet" }),
        ]
      }),
    ]
  }

  const legend = groups.flatMap((name, group) => [
    markAt({ x: 22 + group * 150, y: 48 }, toneOf(group)),
    textAt({ x: 34 + group * 150, y: 52 }, name),
  ])
  const body = panels.flatMap((panel, index) =>
    drawPanel(panel, {
      x: (index % COLUMNS) * panelWidth,
      y: TOP + Math.floor(index / COLUMNS) * panelHeight,
    }),
  )
  const height = TOP + Math.ceil(panels.length / COLUMNS) * panelHeight
  return renderSvg({ width: WIDTH, height, title, description }, [...legend, ...body])
}
