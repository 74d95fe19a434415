/** A drawing's pieces. Colours are classes, so that one file serves a light and a dark page. */
export type Point = { x: number; y: number }

/** Classes a mark may have: one per series, told apart by shape as well as by colour. */
export const TONES = ["a", "b", "c", "d", "e"] as const
export type Tone = (typeof TONES)[number]

type Palette = { paper: string; ink: string; quiet: string; rule: string; limit: string } & Record<Tone, string>

const LIGHT: Palette = {
  paper: "#ffffff",
  ink: "#1f2328",
  quiet: "#59636e",
  rule: "#d1d9e0",
  limit: "#cf222e",
  a: "#0969da",
  b: "#bc4c00",
  c: "#1a7f37",
  d: "#8250df",
  e: "#bf3989",
}
const DARK: Palette = {
  paper: "#0d1117",
  ink: "#f0f6fc",
  quiet: "#9198a1",
  rule: "#3d444d",
  limit: "#f85149",
  a: "#58a6ff",
  b: "#f0883e",
  c: "#3fb950",
  d: "#bc8cff",
  e: "#f778ba",
}

const colours = (palette: Palette): string =>
  [
    `.paper { fill: ${palette.paper} } .ink { fill: ${palette.ink} } .quiet { fill: ${palette.quiet} }`,
    `.rule { stroke: ${palette.rule} } .whisker { stroke: ${palette.ink} } .limit { stroke: ${palette.limit} }`,
    `.limit-text { fill: ${palette.limit} }`,
    ...TONES.map((tone) => `.mark.${tone} { fill: ${palette[tone]} } .line.${tone} { stroke: ${palette[tone]} }`),
  ].join("\n")

const STYLE = `
${colours(LIGHT)}
@media (prefers-color-scheme: dark) {
${colours(DARK)}
}
.line { stroke-width: 2; fill: none } .whisker { stroke-width: 1.5 }
text { font: 12px system-ui, sans-serif } .title { font-size: 15px; font-weight: 600 } .head { font-weight: 600 }
`

export const escapeText = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;")

const number = (value: number): string => String(Math.round(value * 100) / 100)

export type TextOptions = { className?: string; anchor?: "start" | "middle" | "end"; turned?: boolean }

export const textAt = ({ x, y }: Point, text: string, options: TextOptions = {}): string => {
  const { className = "ink", anchor = "start", turned = false } = options
  const turn = turned ? ` transform="rotate(-90 ${number(x)} ${number(y)})"` : ""
  return `<text x="${number(x)}" y="${number(y)}" class="${className}" text-anchor="${anchor}"${turn}>${escapeText(text)}</text>`
}

export const lineBetween = (from: Point, to: Point, className: string, dashed = false): string =>
  `<line x1="${number(from.x)}" y1="${number(from.y)}" x2="${number(to.x)}" y2="${number(to.y)}" class="${className}"${dashed ? ' stroke-dasharray="5 4"' : ""}/>`

export const pathThrough = (points: readonly Point[], tone: Tone, dashed: boolean): string =>
  `<polyline points="${points.map(({ x, y }) => `${number(x)},${number(y)}`).join(" ")}" class="line ${tone}"${dashed ? ' stroke-dasharray="6 4"' : ""}/>`

/** A series' mark: circle, square, diamond, or a triangle that stands or hangs. */
export const markAt = ({ x, y }: Point, tone: Tone): string => {
  if (tone === "a") return `<circle cx="${number(x)}" cy="${number(y)}" r="4" class="mark a"/>`
  const shapes = {
    b: [-3.5, -3.5, 3.5, -3.5, 3.5, 3.5, -3.5, 3.5],
    c: [0, -5, 5, 0, 0, 5, -5, 0],
    d: [0, -5, 4.5, 3.5, -4.5, 3.5],
    e: [0, 5, 4.5, -3.5, -4.5, -3.5],
  }
  const points = shapes[tone].map((offset, index) => number((index % 2 === 0 ? x : y) + offset))
  return `<polygon points="${points.join(" ")}" class="mark ${tone}"/>`
}

/** A whole file, with a title and a description for those who cannot see it. */
export const renderSvg = (
  { width, height, title, description }: { width: number; height: number; title: string; description: string },
  body: readonly string[],
): string =>
  [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img">`,
    `<title>${escapeText(title)}</title>`,
    `<desc>${escapeText(description)}</desc>`,
    `<style>${STYLE}</style>`,
    `<rect width="${width}" height="${height}" class="paper"/>`,
    textAt({ x: 16, y: 26 }, title, { className: "ink title" }),
    ...body,
    "</svg>",
    "",
  ].join("\n")
