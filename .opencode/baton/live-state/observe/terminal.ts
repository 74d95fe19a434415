import { styleText } from "node:util"
import { printableLine } from "../../host/cli.ts"
import { fitWidth } from "../../host/text.ts"
import { describeWait, duration, factTexts, isWaiting, ofWhom, retryText, STATUS } from "../web/page/words.js"
import type { AgentView, Status } from "./view.ts"

type Style = "bold" | "dim" | "red" | "green" | "yellow" | "cyan"
export type Paint = (style: Style, text: string) => string

const SHOWN_LOG_LINES = 3
const WAITING = "Waiting for you"

/** Breaks a text between words, or within one that is longer than a line. */
const wrap = (text: string, width: number): string[] => {
  const lines = [""]
  for (const word of printableLine(text).match(new RegExp(`\\S{1,${Math.max(width, 1)}}`, "gu")) ?? []) {
    const last = lines.pop() ?? ""
    const longer = last === "" ? word : `${last} ${word}`
    if (Array.from(longer).length <= width) lines.push(longer)
    else lines.push(last, word)
  }
  return lines
}

const MARKS: Record<Status["kind"], { mark: string; colour: Style }> = {
  gone: { mark: "·", colour: "dim" },
  crashed: { mark: "✗", colour: "red" },
  idle: { mark: "○", colour: "cyan" },
  retry: { mark: "↻", colour: "yellow" },
  busy: { mark: "●", colour: "green" },
  started: { mark: "○", colour: "dim" },
  permission: { mark: "!", colour: "yellow" },
  question: { mark: "?", colour: "yellow" },
}

/** The session's title, or the agent's name; with the project where the heading does not say it. */
const labelOf = ({ title, name, project }: AgentView, withProject: boolean): string =>
  printableLine([...(withProject ? [project] : []), title ?? name].join(" · "))

type Drawing = { readonly now: Date; readonly width: number; readonly paint: Paint }

const renderAgent = (view: AgentView, { now, width, paint }: Drawing, withProject: boolean): string[] => {
  const { mark, colour } = MARKS[view.doing.kind]
  const since = view.since === undefined ? "" : `, ${duration(now.getTime() - Date.parse(view.since))}`
  const task = view.task ? `${view.task.id} (${printableLine(view.task.role)})` : "no task"
  const title = view.news ? ` ${printableLine(view.news.title)} [${printableLine(view.news.status)}]` : ""
  const facts = [
    ...(view.title === undefined ? [] : [printableLine(view.name)]),
    printableLine(view.session ?? "no session"),
    ...(view.model === undefined ? [] : [printableLine(view.model)]),
    ...factTexts(view),
  ].join(" · ")
  const claim = view.news?.claim === undefined ? [] : [`    claimed by ${printableLine(view.news.claim)}`]
  const handoff = view.news?.handoff === undefined ? [] : [`    handoff: ${printableLine(view.news.handoff)}`]
  const log = (view.news?.log ?? []).slice(-SHOWN_LOG_LINES).map(({ message }) => `    ${printableLine(message)}`)
  return [
    paint(colour, fitWidth(`${mark} ${labelOf(view, withProject)}  ${STATUS[view.doing.kind].word}${since}`, width)),
    ...[
      ...view.waits.flatMap((wait) =>
        [describeWait(wait), ...ofWhom(wait, view.session), wait.goTo ?? [], wait.answer ?? []].flat(),
      ),
      ...(view.retry ? [retryText(view.retry, now.getTime())] : []),
    ].flatMap((text) => wrap(text, width - 4).map((line) => `    ${line}`)),
    fitWidth(`    ${task}${title}`, width),
    paint("dim", fitWidth(`    ${facts}`, width)),
    ...[...claim, ...handoff, ...log].map((line) => paint("dim", fitWidth(line, width))),
  ]
}

/** Renders the agents that wait for a person, of all projects, and then the others by project. */
export const renderObservation = (views: readonly AgentView[], drawing: Drawing): string => {
  const { width, paint } = drawing
  if (views.length === 0)
    return "No agents. They show up here as soon as OpenCode works on something in this project.\n"
  const rank = ({ doing }: AgentView): number =>
    ["permission", "question", "retry", "busy", "idle", "started", "crashed", "gone"].indexOf(doing.kind)
  const inOrder = views.toSorted((a, b) => rank(a) - rank(b))
  const groupOf = (view: AgentView): string | undefined => (isWaiting(view) ? undefined : view.project)
  const blocks = [...new Set(inOrder.map(groupOf))].flatMap((group) => [
    paint("bold", fitWidth(group === undefined ? WAITING : printableLine(group), width)),
    ...inOrder
      .filter((view) => groupOf(view) === group)
      .flatMap((view) => renderAgent(view, drawing, group === undefined)),
    "",
  ])
  return `${blocks.join("\n")}\n`
}

const REDRAW_MS = 1_000
export const DEFAULT_WIDTH = 100
const ENTER_SCREEN = "\u001b[?1049h\u001b[?25l"
const LEAVE_SCREEN = "\u001b[?25h\u001b[?1049l"
const HOME_AND_CLEAR = "\u001b[H\u001b[2J"

const inColour: Paint = (style, text) => styleText(style, text, { validateStream: false })
export const plain: Paint = (_style, text) => text

/** Draws until q, Ctrl-C or the end of the terminal. */
export const watchInTerminal = async (observe: () => Promise<AgentView[]>): Promise<void> => {
  const { stdin, stdout } = process
  const paint = process.env.NO_COLOR ? plain : inColour
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
      stdout.write(`${HOME_AND_CLEAR}${lines.join("\r\n")}\r\n${paint("dim", "q ends")}`)
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
