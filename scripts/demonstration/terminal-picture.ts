import { renameSync, writeFileSync } from "node:fs"
import { userInfo } from "node:os"

/** Colours as `#rrggbb`; absent for the terminal's default. */
type Style = { colour?: string | undefined; background?: string | undefined; isBold?: boolean; isFaint?: boolean }
type Pen = Style & { isReversed?: boolean }
/** Adjacent characters of one style, and the column of the first. */
type Run = { column: number; text: string; style: Style }

const [TEXT, BACKGROUND] = ["#eeeeee", "#0a0a0a"]
/** The eight named colours; the bright ones look the same. */
const NAMED = ["#484f58", "#ff7b72", "#3fb950", "#d29922", "#58a6ff", "#bc8cff", "#58a6ff", "#c9d1d9"]

/** Most fixed-width fonts are 0.6 em wide and 1.2 em high: a cell, in which box-drawing characters meet. */
const [FONT_SIZE, COLUMN_WIDTH, LINE_HEIGHT, BASELINE] = [13.3, 8, 16, 12.5]
const PADDING = 10
const FONT_FAMILY = 'ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono","Liberation Mono",monospace'

const charactersIn = (text: string): number => Array.from(text).length

/** Reads the colour after 38 or 48: `2;R;G;B`, or `5;INDEX` with the index of a named colour; removes its numbers. */
const takeColour = (codes: number[]): string | undefined => {
  if (codes.shift() !== 2) return NAMED[(codes.shift() ?? 0) % 8]
  return `#${Buffer.from(codes.splice(0, 3)).toString("hex")}`
}

/** The style after a sequence "select graphic rendition" (ECMA-48, 8.3.117). Italics, lines and blinking are ignored. */
const applyCodes = (pen: Pen, codes: number[]): Pen => {
  let next = { ...pen }
  for (let code = codes.shift(); code !== undefined; code = codes.shift()) {
    const [tens, ones] = [Math.floor(code / 10), code % 10]
    const part = tens === 3 || tens === 9 ? "colour" : tens === 4 || tens === 10 ? "background" : undefined
    if (code === 0) next = {}
    else if (code === 1) next.isBold = true
    else if (code === 2) next.isFaint = true
    else if (code === 22) next = { ...next, isBold: false, isFaint: false }
    else if (code === 7 || code === 27) next.isReversed = code === 7
    else if (part) next[part] = ones === 9 ? undefined : ones === 8 ? takeColour(codes) : NAMED[ones]
  }
  return next
}

const styleOf = ({ isReversed, ...style }: Pen): Style =>
  isReversed ? { ...style, colour: style.background ?? BACKGROUND, background: style.colour ?? TEXT } : style

const SEQUENCE = new RegExp(`${String.fromCharCode(27)}\\[([0-9;:]*)m`)

/**
 * Parses coloured output, or a screen as `tmux capture-pane -e -p` prints it, into rows: a style continues on the next row. Empty
 * rows at the end are dropped.
 */
const parseScreen = (screen: string): Run[][] => {
  let pen: Pen = {}
  const rows = screen.split("\n").map((line) => {
    let column = 0
    // Text, codes, text, codes, …, text.
    return line.split(SEQUENCE).flatMap((part, index): Run[] => {
      if (index % 2 === 1) pen = applyCodes(pen, part.split(/[;:]/).map(Number))
      if (index % 2 === 1 || part === "") return []
      const run = { column, text: part, style: styleOf(pen) }
      column += charactersIn(part)
      return [run]
    })
  })
  return rows.slice(0, rows.findLastIndex((runs) => runs.some(({ text }) => text.trim() !== "")) + 1)
}

const escapeXml = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;")

const renderBackground = ({ column, text, style: { background } }: Run, top: number): string => {
  const place = `x="${column * COLUMN_WIDTH}" y="${top}" width="${charactersIn(text) * COLUMN_WIDTH}"`
  return background ? `<rect ${place} height="${LINE_HEIGHT}" fill="${background}"/>` : ""
}

/** As wide as its cells in any font. */
const renderText = ({ column, text, style: { colour = TEXT, isBold, isFaint } }: Run, top: number): string => {
  const shown = text.trim()
  const x = (column + text.length - text.trimStart().length) * COLUMN_WIDTH
  const place = `x="${x}" y="${top + BASELINE}" textLength="${charactersIn(shown) * COLUMN_WIDTH}"`
  const look = `${isBold ? ' font-weight="700"' : ""}${isFaint ? ' opacity="0.6"' : ""}`
  return shown && `<text ${place} fill="${colour}"${look}>${escapeXml(shown)}</text>`
}

/**
 * A terminal with one screen below the other, as SVG: text that can be read and searched, in the terminal's own colours and
 * without an external font.
 *
 * @param title describes the picture for screen readers
 */
export const renderTerminal = (title: string, ...screens: readonly string[]): string => {
  const rows = screens.flatMap((screen, index) => [...(index > 0 ? [[]] : []), ...parseScreen(screen)])
  const columns = Math.max(...rows.flat().map(({ column, text }) => column + charactersIn(text)))
  const [width, height] = [columns * COLUMN_WIDTH + 2 * PADDING, rows.length * LINE_HEIGHT + 2 * PADDING]
  const draw = (render: typeof renderText): string[] =>
    rows.flatMap((runs, row) => runs.map((run) => render(run, row * LINE_HEIGHT)).filter(Boolean))
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img" aria-labelledby="title">`,
    `<title id="title">${escapeXml(title)}</title>`,
    `<style>text{font-family:${FONT_FAMILY};font-size:${FONT_SIZE}px;white-space:pre}</style>`,
    `<rect x="0.5" y="0.5" width="${width - 1}" height="${height - 1}" rx="9" fill="${BACKGROUND}" stroke="#3d444d"/>`,
    `<g transform="translate(${PADDING} ${PADDING})">`,
    ...draw(renderBackground),
    ...draw(renderText),
    "</g>",
    "</svg>\n",
  ].join("\n")
}

/** A command at its prompt, and the screen with its output. */
export const atPrompt = (command: string, output: string): string =>
  `\u001b[32m$\u001b[0m \u001b[1m${command}\u001b[0m\n${output}`

/** Writes an SVG in one step. @throws when the picture would show where it was taken */
export const writePicture = (path: string, svg: string): void => {
  const traces = ["baton-picture-", "baton-e2e-", `/${userInfo().username}/`].filter((part) => svg.includes(part))
  if (traces.length > 0) throw new Error(`the picture shows this machine: ${traces.join(", ")}`)
  writeFileSync(`${path}.tmp`, svg)
  renameSync(`${path}.tmp`, path)
}
