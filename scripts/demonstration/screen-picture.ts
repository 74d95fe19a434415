import { charactersIn, escapeXml, FONT_FAMILY, wordsOf } from "./terminal-picture.ts"
import { parseScreen, SCREEN_COLOURS, type ScreenRun } from "./terminal-screen.ts"

/** A screen as `tmux capture-pane -e -p` prints it, and what stands in its window's title. */
export type Frame = { caption: string; screen: string }

/** Most fixed-width fonts are 0.6 em wide: a column. */
const FONT_SIZE = 13.3
const COLUMN_WIDTH = 8
const LINE_HEIGHT = 18
const BASELINE = 13
const PADDING = 10
const TITLE_HEIGHT = 34
const GAP = 20

type Box = { x: number; y: number; width: number; height: number; fill: string }

/** Characters that have to meet those beside them: left, top, width and height as shares of their cell. */
const SHAPES: Readonly<Record<string, readonly [number, number, number, number]>> = {
  "█": [0, 0, 1, 1],
  "▀": [0, 0, 1, 0.5],
  "▄": [0, 0.5, 1, 0.5],
  "▌": [0, 0, 0.5, 1],
  "▐": [0.5, 0, 0.5, 1],
  "┃": [0.375, 0, 0.25, 1],
  "╹": [0.375, 0, 0.25, 0.5],
  "╻": [0.375, 0.5, 0.25, 0.5],
  "│": [0.4375, 0, 0.125, 1],
  "━": [0, 0.44, 1, 0.12],
  "─": [0, 0.47, 1, 0.06],
  "■": [0.125, 0.31, 0.75, 0.38],
  "⬝": [0.375, 0.5, 0.25, 0.11],
}

/** Makes one of boxes that touch and have one colour: fewer, and no seams between rows. */
const mergeBoxes = (boxes: readonly Box[]): Box[] => {
  const rows: Box[] = []
  for (const box of boxes) {
    const before = rows.at(-1)
    const isNext = before && before.x + before.width === box.x && before.y === box.y && before.height === box.height
    if (isNext && before.fill === box.fill) before.width += box.width
    else rows.push({ ...box })
  }
  const merged: Box[] = []
  const open = new Map<string, Box>()
  for (const box of rows) {
    const key = `${box.x} ${box.width} ${box.fill} `
    const above = open.get(key + box.y)
    if (above) above.height += box.height
    else merged.push(box)
    const bottom = above ?? box
    open.set(key + (bottom.y + bottom.height), bottom)
  }
  return merged
}

const backgroundsOf = (run: ScreenRun, y: number): Box[] => {
  const fill = run.style.background
  if (fill === undefined || fill === SCREEN_COLOURS.background) return []
  const width = charactersIn(run.text) * COLUMN_WIDTH
  return [{ x: run.column * COLUMN_WIDTH, y, width, height: LINE_HEIGHT, fill }]
}

const shapesOf = (run: ScreenRun, rowTop: number): Box[] =>
  Array.from(run.text).flatMap((character, index): Box[] => {
    const shape = SHAPES[character]
    if (!shape) return []
    const [left, top, width, height] = shape
    return [
      {
        x: (run.column + index + left) * COLUMN_WIDTH,
        y: rowTop + Math.round(top * LINE_HEIGHT),
        width: width * COLUMN_WIDTH,
        height: Math.max(1, Math.round(height * LINE_HEIGHT)),
        fill: run.style.colour ?? SCREEN_COLOURS.text,
      },
    ]
  })

const renderBox = ({ x, y, width, height, fill }: Box): string =>
  `<rect x="${x}" y="${y}" width="${width}" height="${height}" fill="${fill}"/>`

const renderText = ({ column, text, style }: ScreenRun, rowTop: number): string => {
  const characters = charactersIn(text)
  const stretch = characters > 1 ? ` textLength="${characters * COLUMN_WIDTH}"` : ""
  const look = `${style.bold ? ' font-weight="700"' : ""}${style.faint ? ' opacity="0.6"' : ""}`
  const fill = style.colour ?? SCREEN_COLOURS.text
  return `<text x="${column * COLUMN_WIDTH}" y="${rowTop + BASELINE}" fill="${fill}"${look}${stretch}>${escapeXml(text)}</text>`
}

const withoutShapes = (run: ScreenRun): ScreenRun => ({
  ...run,
  text: Array.from(run.text, (character) => (character in SHAPES ? " " : character)).join(""),
})

const renderWindow = ({ caption, screen }: Frame, { top, columns }: { top: number; columns: number }): string[] => {
  const rows = parseScreen(screen)
  const width = columns * COLUMN_WIDTH + 2 * PADDING
  const height = TITLE_HEIGHT + rows.length * LINE_HEIGHT + 2 * PADDING
  const each = (read: (run: ScreenRun, y: number) => Box[]): Box[] =>
    rows.flatMap((runs, row) => runs.flatMap((run) => read(run, row * LINE_HEIGHT)))
  const dots = ["#ff5f57", "#febc2e", "#28c840"].map(
    (fill, index) => `<circle cx="${20 + index * 18}" cy="${TITLE_HEIGHT / 2}" r="5.5" fill="${fill}"/>`,
  )
  return [
    `<g transform="translate(0 ${top})">`,
    `<rect x="0.5" y="0.5" width="${width - 1}" height="${height - 1}" rx="9" fill="${SCREEN_COLOURS.background}" stroke="#3d444d"/>`,
    `<path d="M1 ${TITLE_HEIGHT}V10a9 9 0 0 1 9-9h${width - 20}a9 9 0 0 1 9 9v${TITLE_HEIGHT - 10}z" fill="#21262d"/>`,
    ...dots,
    `<text x="${width / 2}" y="${TITLE_HEIGHT / 2 + 5}" text-anchor="middle" fill="#c9d1d9">${escapeXml(caption)}</text>`,
    `<g transform="translate(${PADDING} ${TITLE_HEIGHT + PADDING})">`,
    '<g shape-rendering="crispEdges">',
    ...mergeBoxes(each(backgroundsOf)).map(renderBox),
    ...mergeBoxes(each(shapesOf)).map(renderBox),
    "</g>",
    ...rows.flatMap((runs, row) =>
      runs.flatMap((run) => wordsOf(withoutShapes(run))).map((word) => renderText(word, row * LINE_HEIGHT)),
    ),
    "</g>",
    "</g>",
  ]
}

/**
 * Screens of a terminal one below the other, as SVG: text that can be read and searched, in the terminal's own colours
 * and without a font from outside.
 *
 * @param title what the picture shows, for those who cannot see it
 */
export const renderScreens = (
  title: string,
  frames: readonly Frame[],
  size: { columns: number; rows: number },
): string => {
  const { columns, rows } = size
  const width = columns * COLUMN_WIDTH + 2 * PADDING
  const windowHeight = TITLE_HEIGHT + rows * LINE_HEIGHT + 2 * PADDING
  const height = frames.length * (windowHeight + GAP) - GAP
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img" aria-labelledby="title">`,
    `<title id="title">${escapeXml(title)}</title>`,
    `<style>text{font-family:${FONT_FAMILY};font-size:${FONT_SIZE}px;white-space:pre}</style>`,
    ...frames.flatMap((frame, index) => renderWindow(frame, { top: index * (windowHeight + GAP), columns })),
    "</svg>",
    "",
  ].join("\n")
}
