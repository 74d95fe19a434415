import { formatValue } from "./page.ts"
import type { Results, Rows } from "./results.ts"

/** `share` is 1 at the common reference line, and `label` stands beside the bar. */
type Bar = { name: string; version: string; share: number; label: string }

const [WIDTH, LEFT, SPAN, TOP, BAR_HEIGHT] = [760, 330, 320, 60, 20]
/** Longer bars are cut, since they would make the others too small to compare. */
const MOST = 3

/** Text takes the picture's colour, so that one file serves a light and a dark page. */
const STYLE = `
svg { color: #1f2328 } .paper { fill: #ffffff } .v0 { fill: #0969da } .v1 { fill: #bc4c00 } .one { stroke: #cf222e }
@media (prefers-color-scheme: dark) {
svg { color: #f0f6fc } .paper { fill: #0d1117 } .v0 { fill: #58a6ff } .v1 { fill: #f0883e } .one { stroke: #f85149 }
}
text { font: 12px system-ui, sans-serif; fill: currentColor } .title { font-size: 15px; font-weight: 600 }
`

const textAt = (x: number, y: number, text: string, more = ""): string =>
  `<text x="${x.toFixed(1)}" y="${y}"${more}>${text.replaceAll("&", "&amp;").replaceAll("<", "&lt;")}</text>`

const boxAt = (x: number, y: number, width: number, height: number, className: string): string =>
  `<rect x="${x}" y="${y}" width="${width.toFixed(1)}" height="${height}" class="${className}"/>`

/** Horizontal bars against a line at 100 %, one colour per OpenCode version, as the text of an SVG file. */
const renderBars = (title: string, line: string, bars: readonly Bar[]): string => {
  const versions = [...new Set(bars.map(({ version }) => version))]
  const end = Math.min(MOST, Math.max(1, ...bars.map(({ share }) => share)))
  const xOf = (share: number) => LEFT + (Math.min(Math.max(share, 0), end) / end) * SPAN
  const bottom = TOP + bars.length * BAR_HEIGHT + 6
  const height = bottom + 26
  const one = xOf(1).toFixed(1)
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img">`,
    `<title>${title}</title>\n<style>${STYLE}</style>`,
    boxAt(0, 0, WIDTH, height, "paper"),
    textAt(16, 26, title, ' class="title"'),
    ...versions.flatMap((version, index) => [
      boxAt(16 + index * 150, 40, 12, 12, `v${index}`),
      textAt(34 + index * 150, 50, `OpenCode ${version}`),
    ]),
    ...bars.flatMap(({ name, version, share, label }, index) => {
      const y = TOP + index * BAR_HEIGHT
      return [
        textAt(LEFT - 8, y + 12, name, ' text-anchor="end"'),
        boxAt(LEFT, y + 2, Math.max(xOf(share) - LEFT, 1), 12, `v${versions.indexOf(version)}`),
        textAt(xOf(share) + 6, y + 12, share > end ? `${label} (${share.toFixed(1)}×)` : label),
      ]
    }),
    `<line x1="${one}" y1="${TOP - 4}" x2="${one}" y2="${bottom}" class="one"/>`,
    textAt(xOf(1), bottom + 16, line, ' text-anchor="middle"'),
    "</svg>\n",
  ].join("\n")
}

/** Every promised speed figure as a share of its limit. */
const promisesPicture = ({ measurements }: Results): string =>
  renderBars(
    "Promised speed: median as a share of its limit",
    "the limit (left of it: promise kept)",
    Object.values(measurements).flatMap(({ figures }) =>
      figures.flatMap(({ what, version, unit, median, below }) => {
        if (below === undefined || !["ms", "µs", "×"].includes(unit)) return []
        const name = what.replaceAll("`", "").replace(/ \(.*\)/, "")
        return [{ name, version, share: median / below, label: formatValue(median, unit) }]
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
    "all of them",
    bars.toSorted((a, b) => a.name.localeCompare(b.name)),
  )
}

/** The pictures of docs/benchmarks.md by file name. */
export const renderPictures = (results: Results): Record<string, string> => ({
  "promises.svg": promisesPicture(results),
  "retention.svg": retentionPicture(results.measurements.retention?.retention ?? []),
})
