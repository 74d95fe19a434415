import { styleText } from "node:util"
import type { AgentView } from "./agent-view.ts"
import { type Paint, renderObservation } from "./observe-text.ts"

const REDRAW_MS = 1_000
export const DEFAULT_WIDTH = 100
const ENTER_SCREEN = "\u001b[?1049h\u001b[?25l"
const LEAVE_SCREEN = "\u001b[?25h\u001b[?1049l"
const HOME_AND_CLEAR = "\u001b[H\u001b[2J"

const style =
  (name: "bold" | "dim" | "red" | "green" | "yellow" | "cyan", colour: boolean) =>
  (text: string): string =>
    colour ? styleText(name, text, { validateStream: false }) : text

export const createPaint = (colour: boolean): Paint => ({
  bold: style("bold", colour),
  dim: style("dim", colour),
  red: style("red", colour),
  green: style("green", colour),
  yellow: style("yellow", colour),
  cyan: style("cyan", colour),
})

/** Draws until q, Ctrl-C or the end of the terminal. */
export const watchInTerminal = async (observe: () => Promise<AgentView[]>): Promise<void> => {
  const { stdin, stdout } = process
  const paint = createPaint(!process.env.NO_COLOR)
  let isOver = false
  let wake = (): void => {}
  const finish = (): void => {
    isOver = true
    wake()
  }
  stdin.setRawMode?.(true)
  stdin.on("data", (key: Buffer) => {
    if (["q", "\u0003", "\u0004"].includes(key.toString())) finish()
  })
  stdin.on("end", finish)
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, finish)
  stdout.on("resize", () => wake())
  stdout.write(ENTER_SCREEN)
  try {
    while (!isOver) {
      const text = renderObservation(await observe(), {
        now: new Date(),
        width: stdout.columns ?? DEFAULT_WIDTH,
        paint,
      })
      const lines = text.split("\n").slice(0, Math.max((stdout.rows ?? 40) - 2, 1))
      stdout.write(`${HOME_AND_CLEAR}${lines.join("\r\n")}\r\n${paint.dim("q ends")}`)
      await new Promise<void>((resolve) => {
        wake = resolve
        setTimeout(resolve, REDRAW_MS)
      })
    }
  } finally {
    stdout.write(LEAVE_SCREEN)
    stdin.setRawMode?.(false)
  }
}
