import { styleText } from "node:util"
import { complain, localMinute, print, printableLine, printJSON } from "../host/cli.ts"
import { cutText, fitWidth } from "../host/text.ts"
import { duration } from "../live-state/web/page/words.js"
import type { Loop, WorkEvent } from "./loop.ts"
import type { RunView } from "./run.ts"

// What a person sees of `baton work`: a table on a terminal, a line for each event elsewhere, or JSON.

const clock = (): string => localMinute(new Date().toISOString()).split(" ")[1] ?? ""

const tokensText = (tokens: number): string => {
  if (tokens >= 1_000_000) return `${(tokens / 1_000_000).toFixed(1)}M`
  return tokens >= 1_000 ? `${Math.round(tokens / 1_000)}k` : String(tokens)
}

const cut = (text: string, width: number): string => fitWidth(printableLine(text), width)

/** One line for an event. */
export const eventLine = (event: WorkEvent): string => {
  switch (event.event) {
    case "info":
      return event.text
    case "started":
      return `${event.task} ${cut(event.title, 60)}: run ${event.run} ${event.isResumed ? "goes on in its session" : "begins"}`
    case "ended": {
      const why = event.detail === "" ? event.kind : `${event.kind}: ${event.detail}`
      const status = event.status.replace("_", " ")
      const spent = `${duration(event.ms)}, ${tokensText(event.tokens)} tokens`
      return `${event.task} ${cut(event.title, 60)}: ${cut(why, 120)}${status === why ? "" : `; ${status}`} (${spent})`
    }
    case "check":
      return `${event.task} check ${event.outcome}: ${event.command}`
    case "state":
      return `${event.state}${event.reason === "" ? "" : `: ${event.reason}`}`
  }
}

const COLUMNS = [
  ["TASK", 11],
  ["TITLE", 26],
  ["AGENT", 7],
  ["SINCE", 7],
  ["STEP", 5],
  ["COMP", 5],
  ["TOKENS", 7],
] as const

/** Cells of fixed width, and what is left for the last one. */
const row = (cells: readonly string[], last: string, width: number): string => {
  const fixed = COLUMNS.map(([, size], at) => cut(cells[at] ?? "", size - 1).padEnd(size)).join("")
  return cutText(`${fixed}${cut(last, width - fixed.length)}`, width)
}

const slotOf = (holder: string): string => `#${holder.split(".").at(-1) ?? ""}`

/** The table of the running agents, under a line of progress over the queue. */
export const renderTable = (
  views: readonly RunView[],
  { state, reason, spent, queue }: ReturnType<Loop["state"]>,
  { project, width, nowMs }: { project: string; width: number; nowMs: number },
): string[] => {
  const counts = queue?.counts ?? {}
  const [done, reviewing, blocked] = [counts.done ?? 0, counts.reviewing ?? 0, counts.blocked ?? 0]
  const total = Object.values(counts).reduce((sum, count) => sum + count, 0) - (counts.canceled ?? 0)
  const bar = total === 0 ? 0 : Math.round((20 * (done + reviewing)) / total)
  const parts = [
    `${done + reviewing} of ${total} done`,
    ...(queue ? [`${queue.ready} ready`, ...(queue.later > 0 ? [`${queue.later} later`] : [])] : []),
    ...(blocked > 0 ? [`${blocked} need you`] : []),
    `${tokensText(spent)} tokens`,
  ]
  return [
    cut(`baton work · ${project} · ${state}${reason === "" ? "" : `: ${reason}`}`, width),
    cut(`${"█".repeat(bar)}${"░".repeat(20 - bar)} ${parts.join(" · ")}`, width),
    ...(views.length === 0
      ? []
      : [
          "",
          row(
            COLUMNS.map(([name]) => name),
            "LAST",
            width,
          ),
        ]),
    ...views.map((view) =>
      row(
        [
          view.task,
          view.title,
          slotOf(view.holder),
          duration(nowMs - view.startedMs),
          String(view.steps),
          String(view.compactions),
          tokensText(view.tokens),
        ],
        view.last,
        width,
      ),
    ),
  ]
}

export type Display = {
  readonly tell: (event: WorkEvent) => void
  readonly start: (loop: Loop) => void
  readonly end: () => void
}

const lines: Display = {
  tell: (event) => print(`${clock()} ${eventLine(event)}`),
  start: () => {},
  end: () => {},
}

const json: Display = {
  tell: (event) => printJSON({ at: new Date().toISOString(), ...event }, 0),
  start: () => {},
  end: () => {},
}

const REDRAW_MS = 1_000
const LOOK_MS = 15_000
const SHOWN_EVENTS = 8
const DEFAULT_WIDTH = 100
const ESCAPE = "\u001b["

/** Draws in place, below what the terminal shows, and leaves the last picture there. */
const table = (project: string): Display => {
  const { stdout } = process
  const events: string[] = []
  const timers: NodeJS.Timeout[] = []
  const colour = !process.env.NO_COLOR
  let drawn = 0
  let running: Loop | undefined
  const draw = (): void => {
    if (!running) return
    const [width, height] = [(stdout.columns ?? DEFAULT_WIDTH) - 1, stdout.rows ?? 24]
    const head = renderTable(running.views(), running.state(), { project, width, nowMs: Date.now() })
    const all = [...head, "", ...events.slice(-SHOWN_EVENTS).map((text) => cut(text, width))].slice(0, height - 1)
    const styled = all.map((text, at) =>
      colour && (at === 0 || at === 3) ? styleText("bold", text, { validateStream: false }) : text,
    )
    const up = drawn === 0 ? "" : `${ESCAPE}${drawn}A`
    stdout.write(`${up}\r${ESCAPE}J${styled.join("\n")}\n`)
    drawn = all.length
  }
  return {
    tell: (event) => {
      events.push(`${clock()} ${eventLine(event)}`)
      if (running) draw()
      else complain(events.at(-1) ?? "")
    },
    start: (loop) => {
      running = loop
      const look = (): void => void loop.lookAtQueue().catch(() => undefined)
      look()
      timers.push(setInterval(draw, REDRAW_MS), setInterval(look, LOOK_MS))
      draw()
    },
    end: () => {
      for (const timer of timers) clearInterval(timer)
      draw()
    },
  }
}

export const chooseDisplay = (wantsJSON: boolean, project: string): Display => {
  if (wantsJSON) return json
  return process.stdout.isTTY ? table(project) : lines
}
