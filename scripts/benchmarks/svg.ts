/** A drawing's pieces. Colours are classes, so that one file serves a light and a dark page. */
export type Point = { x: number; y: number }

/** Classes a mark may have: one per series, told apart by shape as well as by colour. */
export const TONES = ["a", "b", "c", "d"] as const
export type Tone = (typeof TONES)[number]

const STYLE = `
  .paper { fill: #ffffff } .ink { fill: #1f2328 } .quiet { fill: #59636e } .rule { stroke: #d1d9e0 } .limit { stroke: #cf222e }
  .whisker { stroke: #1f2328; stroke-width: 1.5 }
  .limit-text { fill: #cf222e }
  .a { --tone: #0969da } .b { --tone: #bc4c00 } .c { --tone: #1a7f37 } .d { --tone: #8250df }
  @media (prefers-color-scheme: dark) {
    .paper { fill: #0d1117 } .ink { fill: #f0f6fc } .quiet { fill: #9198a1 } .rule { stroke: #3d444d } .limit { stroke: #f85149 }
    .whisker { stroke: #f0f6fc }
    .limit-text { fill: #f85149 }
    .a { --tone: #58a6ff } .b { --tone: #f0883e } .c { --tone: #3fb950 } .d { --tone: #bc8cff }
  }
  .line { stroke: var(--tone); stroke-width: 2; fill: none } .mark { fill: var(--tone); stroke: none }
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

/** A series' mark: circle, square, diamond or triangle. */
export const markAt = ({ x, y }: Point, tone: Tone): string => {
  if (tone === "a") return `<circle cx="${number(x)}" cy="${number(y)}" r="4" class="mark a"/>`
  const shapes = {
    b: [-3.5, -3.5, 3.5, -3.5, 3.5, 3.5, -3.5, 3.5],
    c: [0, -5, 5, 0, 0, 5, -5, 0],
    d: [0, -5, 4.5, 3.5, -4.5, 3.5],
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
