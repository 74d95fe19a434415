/** The styles that the picture knows, by the codes of the demo's output. */
const STYLES: Record<string, string> = { 1: "b", 2: "d", 31: "r", 32: "g", 33: "y", 36: "c" }

type Run = { column: number; text: string; styles: readonly string[] }

const COLOUR = new RegExp(`${String.fromCharCode(27)}\\[([0-9;]*)m`, "g")

export const charactersIn = (text: string): number => Array.from(text).length

/** A line in runs of one style, each with the column it starts at. Nested styles add up, 0 takes all away. */
export const parseColouredLine = (line: string): Run[] => {
  const runs: Run[] = []
  let column = 0
  let styles: readonly string[] = []
  const add = (text: string): void => {
    if (text !== "") runs.push({ column, text, styles })
    column += charactersIn(text)
  }
  let from = 0
  for (const match of line.matchAll(COLOUR)) {
    add(line.slice(from, match.index))
    from = match.index + match[0].length
    for (const code of (match[1] || "0").split(";")) {
      const style = STYLES[code]
      styles = style ? [...styles, style] : []
    }
  }
  add(line.slice(from))
  return runs
}

export const escapeXml = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;")

const FONT_SIZE = 13
const COLUMN_WIDTH = 7.8
const LINE_HEIGHT = 18
const MARGIN = 20
const TITLE_HEIGHT = 36

export const FONT_FAMILY =
  'ui-monospace,SFMono-Regular,"SF Mono",Menlo,Consolas,"DejaVu Sans Mono","Liberation Mono",monospace'

const STYLE_SHEET = `
    .w{fill:#ffffff;stroke:#d0d7de}.h{fill:#f6f8fa}.l{stroke:#d0d7de}.t{fill:#57606a}
    text{font-family:${FONT_FAMILY};font-size:${FONT_SIZE}px;fill:#1f2328;white-space:pre}
    .b{font-weight:700}.d{fill:#6e7781}.r{fill:#cf222e}.g{fill:#1a7f37}.y{fill:#9a6700}.c{fill:#0969da}
    @media (prefers-color-scheme:dark){
      .w{fill:#0d1117;stroke:#30363d}.h{fill:#161b22}.l{stroke:#30363d}.t{fill:#8b949e}
      text{fill:#e6edf3}.d{fill:#8b949e}.r{fill:#ff7b72}.g{fill:#3fb950}.y{fill:#d29922}.c{fill:#58a6ff}
    }`

const round = (value: number): string => String(Math.round(value * 10) / 10)

/** Words of a run with the column of each: spaces need no drawing, and a glyph of odd width moves nothing after it. */
export const wordsOf = <T extends { column: number; text: string }>(run: T): T[] =>
  [...run.text.matchAll(/[!-~]+(?: [!-~]+)*|[^\s!-~]+/g)].map((match) => ({
    ...run,
    column: run.column + charactersIn(run.text.slice(0, match.index)),
    text: match[0],
  }))

const renderWord = ({ column, text, styles }: Run, baseline: number): string => {
  const characters = charactersIn(text)
  const x = MARGIN + column * COLUMN_WIDTH
  if (text === "│") {
    const [middle, top] = [round(x + COLUMN_WIDTH / 2 - 1), round(baseline - LINE_HEIGHT + 5)]
    return `<rect class="${styles.at(-1) ?? "d"}" x="${middle}" y="${top}" width="2" height="${LINE_HEIGHT}"/>`
  }
  const classes = styles.length > 0 ? ` class="${[...new Set(styles)].join(" ")}"` : ""
  const stretch = characters > 1 ? ` textLength="${round(characters * COLUMN_WIDTH)}"` : ""
  return `<text${classes} x="${round(x)}" y="${round(baseline)}"${stretch}>${escapeXml(text)}</text>`
}

/**
 * A terminal window with a command and its coloured output, as SVG: text that can be read and searched, light or dark
 * as the reader's screen, no font from outside.
 */
export const renderTerminalPicture = (command: string, output: string): string => {
  const lines = [`\u001b[32m$\u001b[0m \u001b[1m${command}\u001b[0m`, ...output.trimEnd().split("\n")]
  const rows = lines.map(parseColouredLine)
  const columns = Math.max(...rows.flat().map(({ column, text }) => column + charactersIn(text)))
  const width = Math.ceil(2 * MARGIN + columns * COLUMN_WIDTH)
  const height = TITLE_HEIGHT + MARGIN + rows.length * LINE_HEIGHT + 8
  const body = rows.flatMap((runs, row) =>
    runs.flatMap(wordsOf).map((word) => renderWord(word, TITLE_HEIGHT + MARGIN + 6 + row * LINE_HEIGHT)),
  )
  const dots = ["#ff5f57", "#febc2e", "#28c840"].map(
    (colour, index) => `<circle cx="${20 + index * 18}" cy="${TITLE_HEIGHT / 2}" r="5.5" fill="${colour}"/>`,
  )
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img" aria-labelledby="title">`,
    `<title id="title">The output of ${escapeXml(command)}</title>`,
    `<style>${STYLE_SHEET}\n</style>`,
    `<rect class="w" x="0.5" y="0.5" width="${width - 1}" height="${height - 1}" rx="9"/>`,
    `<path class="h" d="M1 ${TITLE_HEIGHT}V10a9 9 0 0 1 9-9h${width - 20}a9 9 0 0 1 9 9v${TITLE_HEIGHT - 10}z"/>`,
    `<path class="l" d="M1 ${TITLE_HEIGHT}.5h${width - 2}"/>`,
    ...dots,
    `<text class="t" x="${width / 2}" y="${TITLE_HEIGHT / 2 + 5}" text-anchor="middle">${escapeXml(command)}</text>`,
    ...body,
    "</svg>",
    "",
  ].join("\n")
}
