import { join } from "node:path"
import { styleText } from "node:util"
import type { AgentEvent, AgentRun } from "./agent-run.ts"
import {
  type Claim,
  type FirstRequest,
  type Knowledge,
  type LedgerTask,
  linesBelow,
  type RecordedCompaction,
  STANDING,
} from "./claims.ts"
import type { DemoOptions, Place } from "./place.ts"
import { CONSTRAINT, TASK } from "./slug-project.ts"

type Style = "bold" | "dim" | "green" | "red" | "yellow" | "cyan"
/** Text in a style of the terminal, or unchanged. */
export type Paint = (style: Style, text: string) => string

export const createPaint =
  (isColoured: boolean): Paint =>
  (style, text) =>
    isColoured && text !== "" ? styleText(style, text, { validateStream: false }) : text

/** NO_COLOR (no-color.org) overrides FORCE_COLOR; without them, colour is used in a terminal. */
export const wantsColour = (environment: Record<string, string | undefined>, isTerminal: boolean): boolean => {
  if (environment.NO_COLOR) return false
  if (environment.FORCE_COLOR && environment.FORCE_COLOR !== "0") return true
  return isTerminal && environment.TERM !== "dumb"
}

export const WIDTH = 100
const INDENT = "   "

const oneLine = (text: string): string => text.replace(/\s+/g, " ")
const cut = (text: string, width: number): string => (text.length > width ? `${text.slice(0, width - 1)}…` : text)

/** The demo's title, with its real and its scripted parts. */
export const renderHeader = (options: DemoOptions, version: string, paint: Paint): string[] => {
  const bundle = options.withBaton ? "the Baton plugin, " : ""
  const title = options.withBaton
    ? "Baton demo: a task survives compaction"
    : "Baton demo WITHOUT Baton: what plain OpenCode loses"
  const real = `${paint("green", "real     ")}  OpenCode ${version}, ${bundle}the ledger, the files, the test`
  if (options.model) return [paint("bold", title), `${real}, the model ${options.model}`]
  const scripted = "the model: it remembers nothing, and computes each answer from the request alone"
  return [paint("bold", title), real, `${paint("yellow", "scripted ")}  ${scripted}`]
}

export const renderTask = (taskID: string, { withBaton }: DemoOptions, paint: Paint): string[] => {
  const pasted = withBaton ? "" : paint("dim", " ⏎ and all of the task, pasted")
  const rows = [
    ["task", `${paint("bold", taskID)}  ${TASK.title}`],
    ["done when", TASK.definitionOfDone],
    ["message", `Task: ${taskID} ⏎ ${CONSTRAINT}${pasted}`],
  ] as const
  return rows.map(([name, text]) => `${INDENT}${paint("dim", name.padEnd(11))}${text}`)
}

/**
 * Shows an agent's steps as they happen: one flowing line between two compactions, wrapped at the width.
 *
 * @param describe returns the text for compaction N, from 1
 */
export const createProgress = (write: (text: string) => void, paint: Paint, describe: (number: number) => string) => {
  let [column, compactions] = [0, 0]
  /** Ends the open line. */
  const end = (): void => {
    if (column > 0) write("\n")
    column = 0
  }
  const show = ({ kind, text }: AgentEvent): void => {
    if (kind === "compacted") {
      end()
      const remark = describe(++compactions)
      write(`${INDENT}${paint("yellow", `▼ compaction ${compactions}`)}${remark && `  ${paint("dim", remark)}`}\n`)
    }
    if (kind !== "tool") return
    if (column > 0 && column + text.length + 3 > WIDTH) {
      write(paint("dim", " ·"))
      end()
    }
    const separator = column === 0 ? INDENT : " · "
    const shown = text.includes("✗") ? paint("red", text) : text.includes("✓") ? paint("green", text) : text
    write(`${paint("dim", separator)}${shown}`)
    column += separator.length + text.length
  }
  return { show, end }
}

export const renderAgentEnd = ({ seconds, lastText, error }: AgentRun, paint: Paint): string[] => {
  const end = `${paint("dim", `the agent, after ${seconds.toFixed(1)} s:`)} ${oneLine(lastText).slice(0, 76)}`
  return [end, paint("red", oneLine(error))].filter(Boolean).map((line) => INDENT + line)
}

const COLUMNS = [
  ["task ID", "task"],
  ["role", "role"],
  ["specification", "specification"],
  ["done when", "definitionOfDone"],
  ["constraint", "constraint"],
] as const satisfies readonly (readonly [string, keyof Knowledge])[]

/**
 * One row for each request before which the model knows nothing, with the facts in that request.
 *
 * @param kinds of the summaries, in order
 */
export const renderKnowledge = (told: readonly FirstRequest[], kinds: readonly string[], paint: Paint): string[] => {
  const row = (moment: string, cells: readonly string[]): string =>
    `${INDENT}${moment.padEnd(36)}${cells.join("   ")}`.trimEnd()
  const cell = (title: string, holds: boolean): string => {
    const [mark, style] = holds ? (["✓", "green"] as const) : (["✗", "red"] as const)
    const centred = mark.padStart((title.length + 1) / 2).padEnd(title.length)
    return centred.replace(mark, paint(style, mark))
  }
  const left = [...kinds]
  const moment = (after: FirstRequest["after"], index: number): string => {
    if (after === "compaction") return `after ${left.shift() ?? "a summary"}`
    return index === 0 ? "at the beginning" : "after kill -9, in a new session"
  }
  const titles = COLUMNS.map(([title]) => title)
  return [
    paint("dim", row("", titles)),
    ...told.map(({ after, knowledge }, index) => {
      const cells = COLUMNS.map(([title, name]) => cell(title, knowledge[name]))
      return row(moment(after, index), cells)
    }),
  ]
}

/** One line for each compaction in the ledger, with its time in UTC. */
export const renderTimeline = (recorded: readonly RecordedCompaction[], paint: Paint): string[] =>
  recorded.length === 0
    ? [paint("red", `${INDENT}no compaction is recorded`)]
    : recorded.map(({ number, at, line }) => {
        const time = paint("dim", at.slice(11, 19))
        return `${INDENT}${time}  ${paint("yellow", String(number))}  ${cut(line, WIDTH - 16)}`
      })

const GUTTER_WIDTH = 13
type Part = readonly [name: string, lines: readonly string[], style?: Style]

/** Lines with their names in a left column. */
const renderParts = (parts: readonly Part[], paint: Paint): string[] =>
  parts.flatMap(([name, lines, style]) =>
    lines.map((line, index) => {
      const label = paint("dim", (index === 0 ? name : "").padStart(GUTTER_WIDTH))
      const text = cut(line, WIDTH - GUTTER_WIDTH - 6)
      return `${INDENT}${label} ${style ? paint(style, "│") : "│"} ${/^(?: {2})?⋯/.test(text) ? paint("dim", text) : text}`
    }),
  )

/** The state of the work in the first request after the crash, shortened. */
export const renderStanding = (conversation: string, paint: Paint): string[] => {
  const parts = Object.entries(STANDING).map(([name, heading]): Part => {
    const lines = linesBelow(conversation, heading).filter((line) => !/UTC: Compaction \d+: /.test(line))
    return [name, heading === STANDING["last handoff"] ? lines.slice(0, 2) : lines.slice(-1), "yellow"]
  })
  return renderParts(parts, paint)
}

const SHOWN_HANDOFF_LINES = 3
const SHOWN_LOG_LINES = 2
/** Lines of `prog show` that add nothing here, and headings that the left column repeats. */
const LEFT_OUT = /^(?:Type|Project|Priority|Description):/

const meaningful = (text: string): string[] => text.split("\n").filter((line) => line.trim() !== "")

const shortenHandoff = (lines: readonly string[]): readonly string[] => {
  const left = lines.length - SHOWN_HANDOFF_LINES - 1
  return left <= 1 ? lines : [...lines.slice(0, SHOWN_HANDOFF_LINES), `⋯ ${left} more lines`, ...lines.slice(-1)]
}

const shortenLog = (lines: readonly string[]): string[] => {
  const shown = lines.filter((line) => !/\] Compaction \d+: /.test(line)).slice(-SHOWN_LOG_LINES)
  const left = lines.length - shown.length
  return left === 0 ? shown : [`  ⋯ ${left} more lines, the compactions above among them`, ...shown]
}

/**
 * The text of `prog show`, its parts named in a left column; omissions are marked.
 *
 * @param specification the part of the description that is not the handoff
 */
export const renderShow = (
  shown: string,
  { description }: Pick<LedgerTask, "description">,
  specification: string,
  paint: Paint,
): string[] => {
  const at = shown.indexOf(description)
  if (at < 0 || description === "") return shown.split("\n").map((line) => INDENT + cut(line, WIDTH - 3))
  const [definition = "", ...log] = shown.slice(at + description.length).split("\nLogs:")
  const head = meaningful(shown.slice(0, at)).filter((line) => !LEFT_OUT.test(line))
  const parts: Part[] = [
    ["task", head],
    ["specification", meaningful(specification), "cyan"],
    ["handoff", shortenHandoff(meaningful(description.replace(specification, ""))), "yellow"],
    ["done when", meaningful(definition).slice(1), "green"],
    ["log", shortenLog(meaningful(log.join("\nLogs:")))],
  ]
  return renderParts(parts, paint)
}

export const renderClaims = (claims: readonly Claim[], paint: Paint): string[] =>
  claims.map(({ weight, holds, text }) => {
    if (weight === "reported") return `${INDENT}${paint("dim", holds ? "· yes" : "· no ")}  ${text}`
    return `${INDENT}${holds ? paint("green", "✓") : paint("red", "✗")}  ${holds ? text : paint("red", text)}`
  })

type DemoEnd = {
  place: Pick<Place, "options" | "repository" | "root" | "ledger">
  taskID: string
  passed: boolean
  /** The session was removed from the user's list; undefined if there was none to remove. */
  isForgotten: boolean | undefined
}

/** The demo's outcome, and the files that are kept. */
export const renderEnd = ({ place, taskID, passed, isForgotten = false }: DemoEnd, paint: Paint): string[] => {
  const { options, repository, root, ledger } = place
  const held = options.model ? "What Baton promises holds; what is marked · was up to the model." : "Every claim holds."
  const failed = options.withBaton
    ? "A claim does not hold: see ✗ above."
    : "That is what plain OpenCode loses. The same with Baton: ./scripts/demo"
  const session = isForgotten
    ? "its session is out of your list again"
    : 'its session "Baton demo" is still in your list'
  const settings = `BATON_LEDGER=embedded PROG_DB='${ledger}' BATON_RUNTIME='${process.execPath}'`
  const prog = join(repository, ".opencode", "baton", "bin", "prog")
  return [
    paint("bold", passed ? paint("green", held) : paint("red", failed)),
    ...(options.model ? [`Your OpenCode keeps its own log of this run; ${session}.`] : []),
    ...(options.keep ? [`Kept in ${root}; look again with:`, `  ${settings} '${prog}' show ${taskID}`] : []),
  ]
}
