import { formatValue } from "./page.ts"
import type { Results, Rows } from "./results.ts"

/** `share` is 1 at the common reference line, `low` and `high` are its bounds, and `label` stands beside the bar. */
type Bar = { name: string; version: string; share: number; low?: number; high?: number; label: string }

const [WIDTH, LEFT, RIGHT, TOP, BAR_HEIGHT] = [760, 330, 110, 66, 20]
/** Longer bars are cut, since they would make the others too small to compare. */
const MOST = 3

/** Text takes the picture's colour, so that one file serves a light and a dark page. */
const STYLE = `
svg { color: #1f2328 } .paper { fill: #ffffff } .v0 { fill: #0969da } .v1 { fill: #bc4c00 } .one { stroke: #cf222e }
@media (prefers-color-scheme: dark) {
svg { color: #f0f6fc } .paper { fill: #0d1117 } .v0 { fill: #58a6ff } .v1 { fill: #f0883e } .one { stroke: #f85149 }
}
text { font: 12px system-ui, sans-serif; fill: currentColor } .title { font-size: 15px; font-weight: 600 }
.rule { stroke: currentColor; opacity: 0.2 } .whisker { stroke: currentColor; stroke-width: 1.5 }
`

const escapeText = (text: string): string => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;")

const textAt = (x: number, y: number, text: string, anchor = "start", className = "text"): string =>
  `<text x="${x.toFixed(1)}" y="${y}" text-anchor="${anchor}" class="${className}">${escapeText(text)}</text>`

const boxAt = (x: number, y: number, width: number, height: number, className: string): string =>
  `<rect x="${x}" y="${y}" width="${width.toFixed(1)}" height="${height}" class="${className}"/>`

const lineFrom = (x1: number, y1: number, x2: number, y2: number, className: string): string =>
  `<line x1="${x1.toFixed(1)}" y1="${y1}" x2="${x2.toFixed(1)}" y2="${y2}" class="${className}"/>`

/** Horizontal bars against a common line, one colour per OpenCode version, as the text of an SVG file. */
const renderBars = (title: string, description: string, axis: string, bars: readonly Bar[]): string => {
  const versions = [...new Set(bars.map(({ version }) => version))]
  const end = Math.min(MOST, Math.ceil(Math.max(1, ...bars.flatMap(({ share, high }) => [share, high ?? 0])) * 4) / 4)
  const xOf = (share: number) => LEFT + (Math.min(Math.max(share, 0), end) / end) * (WIDTH - LEFT - RIGHT)
  const bottom = TOP + bars.length * BAR_HEIGHT + 6
  const height = bottom + 46
  const ticks = Array.from({ length: Math.floor(end * 2) + 1 }, (_, index) => index / 2)
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img">`,
    `<title>${escapeText(title)}</title>\n<desc>${escapeText(description)}</desc>\n<style>${STYLE}</style>`,
    boxAt(0, 0, WIDTH, height, "paper"),
    textAt(16, 26, title, "start", "title"),
    ...versions.flatMap((version, index) => [
      boxAt(16 + index * 150, 42, 12, 12, `v${index}`),
      textAt(34 + index * 150, 52, `OpenCode ${version}`),
    ]),
    ...ticks.flatMap((share) => [
      lineFrom(xOf(share), TOP - 4, xOf(share), bottom, share === 1 ? "one" : "rule"),
      textAt(xOf(share), bottom + 16, `${share * 100} %`, "middle"),
    ]),
    textAt((LEFT + WIDTH - RIGHT) / 2, bottom + 36, axis, "middle"),
    ...bars.flatMap(({ name, version, share, low = share, high = share, label }, index) => {
      const y = TOP + index * BAR_HEIGHT
      return [
        textAt(LEFT - 8, y + 12, name, "end"),
        boxAt(LEFT, y + 2, Math.max(xOf(share) - LEFT, 1), 12, `v${versions.indexOf(version)}`),
        ...(high > low ? [lineFrom(xOf(low), y + 8, xOf(high), y + 8, "whisker")] : []),
        textAt(Math.max(xOf(share), xOf(high)) + 6, y + 12, share > end ? `${label} (${share.toFixed(1)}×)` : label),
      ]
    }),
    "</svg>\n",
  ].join("\n")
}

/** Every promised speed figure as a share of its limit. */
const promisesPicture = ({ measurements }: Results): string =>
  renderBars(
    "Promised speed: median as a share of its limit",
    "Measured medians divided by what is promised, up to three times that; whiskers are 95 % intervals.",
    "share of the limit (left of 100 %: promise kept)",
    Object.values(measurements).flatMap(({ figures }) =>
      figures.flatMap(({ what, version, unit, median, low, high, below }) => {
        if (below === undefined || !["ms", "µs", "×"].includes(unit)) return []
        const bounds = low === undefined || high === undefined ? {} : { low: low / below, high: high / below }
        const name = what.replaceAll("`", "").replace(/ \(.*\)/, "")
        return [{ name, version, share: median / below, ...bounds, label: formatValue(median, unit) }]
      }),
    ),
  )

/** The outcome of the longest runs of the retention scenario. */
const retentionPicture = (rows: readonly Rows["retention"][]): string => {
  const most = Math.max(...rows.map(({ compactions }) => compactions))
  const barsOf = (quantity: string, kept: "factsKept" | "turnsKnowingTask", all: "facts" | "turns"): Bar[] =>
    rows
      .filter(({ compactions }) => compactions === most)
      .map((row) => ({
        name: `${quantity}, ${row.summariser}, ${row.bundle === "baton" ? "Baton" : "plain OpenCode"}`,
        version: row.version,
        share: row[kept] / row[all],
        label: `${row[kept]} of ${row[all]}`,
      }))
  const bars = [...barsOf("task named", "turnsKnowingTask", "turns"), ...barsOf("facts kept", "factsKept", "facts")]
  return renderBars(
    `What is left after ${most} compactions, with a faithful and a careless summariser`,
    "Share of turns that name the task and of facts kept, with Baton and in plain OpenCode.",
    "share",
    bars.toSorted((a, b) => a.name.localeCompare(b.name)),
  )
}

/** The pictures of docs/benchmarks.md by file name. */
export const renderPictures = (results: Results): Record<string, string> => ({
  "promises.svg": promisesPicture(results),
  "retention.svg": retentionPicture(results.measurements.retention?.retention ?? []),
})
