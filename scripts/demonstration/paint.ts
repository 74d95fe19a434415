/** Colours for a terminal, or the text as it is. */
export type Paint = Record<"bold" | "dim" | "green" | "red" | "yellow" | "cyan", (text: string) => string>

const CODES = { bold: 1, dim: 2, green: 32, red: 31, yellow: 33, cyan: 36 } as const

const coloured =
  (code: number) =>
  (text: string): string =>
    text === "" ? "" : `\u001b[${code}m${text}\u001b[0m`
const plain = (text: string): string => text

export const createPaint = (isColoured: boolean): Paint => {
  const style = (name: keyof typeof CODES) => (isColoured ? coloured(CODES[name]) : plain)
  return {
    bold: style("bold"),
    dim: style("dim"),
    green: style("green"),
    red: style("red"),
    yellow: style("yellow"),
    cyan: style("cyan"),
  }
}

/** NO_COLOR (no-color.org) outweighs FORCE_COLOR; otherwise a terminal decides. */
export const wantsColour = (environment: Record<string, string | undefined>, isTerminal: boolean): boolean => {
  if (environment.NO_COLOR) return false
  if (environment.FORCE_COLOR && environment.FORCE_COLOR !== "0") return true
  return isTerminal && environment.TERM !== "dumb"
}
