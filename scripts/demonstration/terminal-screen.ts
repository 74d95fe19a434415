import { charactersIn } from "./terminal-picture.ts"

/** `#rrggbb`; absent for the terminal's own colour. */
export type CellStyle = { colour?: string; background?: string; bold?: boolean; faint?: boolean }
/** Characters of one style in a row, and the column of the first. */
export type ScreenRun = { column: number; text: string; style: CellStyle }

/** xterm's first sixteen. */
const NAMED = [
  ["#000000", "#cd0000", "#00cd00", "#cdcd00", "#0000ee", "#cd00cd", "#00cdcd", "#e5e5e5"],
  ["#7f7f7f", "#ff0000", "#00ff00", "#ffff00", "#5c5cff", "#ff00ff", "#00ffff", "#ffffff"],
].flat()
const CUBE_LEVELS = [0, 95, 135, 175, 215, 255]

const hex = (red: number, green: number, blue: number): string =>
  `#${[red, green, blue].map((part) => (part & 0xff).toString(16).padStart(2, "0")).join("")}`

const paletteColour = (index: number): string => {
  const named = NAMED[index]
  if (named !== undefined) return named
  if (index >= 232) return hex(8 + (index - 232) * 10, 8 + (index - 232) * 10, 8 + (index - 232) * 10)
  const level = (power: number): number => CUBE_LEVELS[Math.floor((index - 16) / 6 ** power) % 6] ?? 0
  return hex(level(2), level(1), level(0))
}

/** What follows 38 or 48: `5;INDEX` or `2;R;G;B`. Takes its numbers off the list. */
const takeColour = (codes: number[]): string => {
  if (codes.shift() === 5) return paletteColour(codes.shift() ?? 0)
  const [red = 0, green = 0, blue = 0] = codes.splice(0, 3)
  return hex(red, green, blue)
}

type Pen = CellStyle & { reversed?: boolean }

/** The pen after a sequence "select graphic rendition" (ECMA-48, 8.3.117). Slant, lines and blinking are left out. */
const applyCodes = (pen: Pen, codes: number[]): Pen => {
  let next: Pen = { ...pen }
  for (let code = codes.shift(); code !== undefined; code = codes.shift()) {
    if (code === 0) next = {}
    else if (code === 1) next.bold = true
    else if (code === 2) next.faint = true
    else if (code === 22) {
      delete next.bold
      delete next.faint
    } else if (code === 7) next.reversed = true
    else if (code === 27) delete next.reversed
    else if (code === 38) next.colour = takeColour(codes)
    else if (code === 48) next.background = takeColour(codes)
    else if (code === 39) delete next.colour
    else if (code === 49) delete next.background
    else if (code >= 30 && code <= 37) next.colour = paletteColour(code - 30)
    else if (code >= 40 && code <= 47) next.background = paletteColour(code - 40)
    else if (code >= 90 && code <= 97) next.colour = paletteColour(code - 82)
    else if (code >= 100 && code <= 107) next.background = paletteColour(code - 92)
  }
  return next
}

export const SCREEN_COLOURS = { text: "#eeeeee", background: "#0a0a0a" } as const

const styleOf = ({ reversed = false, ...style }: Pen): CellStyle =>
  reversed
    ? {
        ...style,
        colour: style.background ?? SCREEN_COLOURS.background,
        background: style.colour ?? SCREEN_COLOURS.text,
      }
    : style

const SEQUENCE = new RegExp(`${String.fromCharCode(27)}\\[([0-9;:]*)m`, "g")

/**
 * The rows of a screen as `tmux capture-pane -e -p` prints it. The style goes on from one row to the next, as tmux
 * has it.
 */
export const parseScreen = (screen: string): ScreenRun[][] => {
  let pen: Pen = {}
  return screen
    .replace(/\n$/, "")
    .split("\n")
    .map((line) => {
      const runs: ScreenRun[] = []
      let column = 0
      const add = (text: string): void => {
        if (text !== "") runs.push({ column, text, style: styleOf(pen) })
        column += charactersIn(text)
      }
      let from = 0
      for (const match of line.matchAll(SEQUENCE)) {
        add(line.slice(from, match.index))
        from = match.index + match[0].length
        pen = applyCodes(pen, (match[1] || "0").split(/[;:]/).map(Number))
      }
      add(line.slice(from))
      return runs
    })
}
