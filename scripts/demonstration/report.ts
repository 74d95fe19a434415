import { join } from "node:path"
import { styleText } from "node:util"
import { type AgentEvent, type AgentRun, cut } from "./agent-run.ts"
import { type Claim, FACTS, type FirstRequest, linesBelow, type RecordedCompaction, STANDING } from "./claims.ts"
import type { DemoOptions, Place } from "./place.ts"
import { CONSTRAINT, TASK } from "./slug-project.ts"
import type { Said } from "./talk.ts"

const { NO_COLOR, FORCE_COLOR, TERM } = process.env
/** NO_COLOR (no-color.org) overrides FORCE_COLOR; without them, colour is used in a terminal. */
const isColoured =
  !NO_COLOR && ((FORCE_COLOR && FORCE_COLOR !== "0") || (process.stdout.isTTY === true && TERM !== "dumb"))

/** Text in a style of the terminal, or unchanged. */
export const paint = (style: "bold" | "dim" | "green" | "red" | "yellow" | "cyan", text: string): string =>
  isColoured && text !== "" ? styleText(style, text, { validateStream: false }) : text

const WIDTH = 100
const INDENT = "   "
const markOf = (holds: boolean): string => (holds ? paint("green", "✓") : paint("red", "✗"))
const oneLine = (text: string): string => text.replace(/\s+/g, " ")

/** The demo's title, with its real and its scripted parts. */
export const renderHeader = ({ withBaton, model }: DemoOptions, version: string): string[] => {
  const title = withBaton
    ? "Baton demo: a task survives compaction"
    : "Baton demo WITHOUT Baton: what plain OpenCode loses"
  const bundle = withBaton ? "the Baton plugin, " : ""
  const real = `${paint("green", "real     ")}  OpenCode ${version}, ${bundle}the ledger, the files, the test`
  if (model) return [paint("bold", title), `${real}, the model ${model}`]
  const scripted = "the model: it remembers nothing, and computes each answer from the request alone"
  return [paint("bold", title), real, `${paint("yellow", "scripted ")}  ${scripted}`]
}

/** A message of the user's. */
export const renderSaid = ({ text, isUndone }: Said): string => {
  const line = cut(text.trim().replaceAll("\n", " ⏎ "), WIDTH - 16)
  return `${INDENT}${paint("cyan", "›")} ${isUndone ? `${paint("dim", line)}  ${paint("yellow", "↶ undone")}` : line}`
}

/** @param isTold the messages are shown on their own */
export const renderTask = (taskID: string, { withBaton }: DemoOptions, isTold: boolean): string[] => {
  const pasted = withBaton ? "" : paint("dim", " ⏎ and all of the task, pasted")
  const rows = [
    ["task", `${paint("bold", taskID)}  ${TASK.title}`],
    ["done when", TASK.definitionOfDone],
    ...(isTold && withBaton ? [] : [["message", `Task: ${taskID} ⏎ ${CONSTRAINT}${pasted}`] as const]),
  ] as const
  return rows.map(([name, text]) => `${INDENT}${paint("dim", name.padEnd(11))}${text}`)
}

/**
 * Shows an agent's steps as they happen: one flowing line between two compactions, wrapped at the width.
 *
 * @param describe returns the text for compaction N, from 1
 */
export const createProgress = (write: (text: string) => void, describe: (number: number) => string) => {
  let [column, compactions] = [0, 0]
  /** Ends the open line. */
  const end = (): void => {
    if (column > 0) write("\n")
    column = 0
  }
  const show = ({ kind, text }: AgentEvent): void => {
    if (kind === "compacted") {
      end()
      const title = paint("yellow", `▼ compaction ${++compactions}`)
      write(`${INDENT}${title}  ${paint("dim", describe(compactions))}`.trimEnd().concat("\n"))
    }
    if (kind !== "tool") return
    if (column > 0 && column + text.length + 3 > WIDTH) end()
    const separator = column === 0 ? INDENT : " · "
    const shown = text.includes("✗") ? paint("red", text) : text.includes("✓") ? paint("green", text) : text
    write(`${paint("dim", separator)}${shown}`)
    column += separator.length + text.length
  }
  return { show, end }
}

export const renderAgentEnd = ({ seconds, lastText, error }: AgentRun): string[] => {
  const end = `${paint("dim", `the agent, after ${seconds.toFixed(1)} s:`)} ${oneLine(lastText).slice(0, 76)}`
  return [end, paint("red", oneLine(error))].filter(Boolean).map((line) => INDENT + line)
}

/**
 * One row for each request before which the model knows nothing, with the facts in that request.
 *
 * @param kinds of the summaries, in order
 */
export const renderKnowledge = (told: readonly FirstRequest[], kinds: readonly string[]): string[] => {
  const row = (moment: string, cells: readonly string[]): string =>
    `${INDENT}${moment.padEnd(34)}${cells.join("  ")}`.trimEnd()
  const titles = FACTS.map(([name]) => name).slice(0, told[0]?.isTold.length)
  const left = [...kinds]
  const rows = told.map(({ after, isTold }, index) => {
    const begin = index === 0 ? "at the beginning" : "after kill -9, in a new session"
    const moment = after === "compaction" ? `after ${left.shift() ?? "a summary"}` : begin
    const cells = titles.map((title, at) => markOf(isTold[at] === true) + " ".repeat(title.length - 1))
    return row(moment, cells)
  })
  return [paint("dim", row("", titles)), ...rows]
}

/** The state of the work in the first request after the crash, shortened, its parts named in a left column. */
export const renderStanding = (conversation: string): string[] =>
  Object.entries(STANDING).flatMap(([name, heading]) => {
    const lines = linesBelow(conversation, heading).filter((line) => !/UTC: Compaction \d+: /.test(line))
    const shown = heading === STANDING["last handoff"] ? lines.slice(0, 2) : lines.slice(-1)
    return shown.map((line, index) => {
      const label = paint("dim", (index === 0 ? name : "").padStart(13))
      return `${INDENT}${label} ${paint("yellow", "│")} ${cut(line, WIDTH - 19)}`
    })
  })

/** One line for each compaction in the ledger, with its time in UTC. */
export const renderTimeline = (recorded: readonly RecordedCompaction[]): string[] => {
  const lines = recorded.map(({ number, at, line }) => {
    const time = paint("dim", at.slice(11, 19))
    return `${INDENT}${time}  ${paint("yellow", String(number))}  ${cut(line, WIDTH - 16)}`
  })
  return lines.length > 0 ? lines : [paint("red", `${INDENT}no compaction is recorded`)]
}

const FIRST_LINES = 13
const LAST_LINES = 9

/** The text of `prog show` without empty lines and compactions; its middle is left out, and marked. */
export const renderShow = (shown: string): string[] => {
  const said = shown.split("\n").filter((line) => line.trim() !== "" && !/\] Compaction \d+: /.test(line))
  const lines = said.map((line) => INDENT + cut(line, WIDTH - 3))
  const left = lines.length - FIRST_LINES - LAST_LINES
  if (left < 2) return lines
  const gap = paint("dim", `${INDENT}⋯ ${left} more lines`)
  return [...lines.slice(0, FIRST_LINES), gap, ...lines.slice(-LAST_LINES)]
}

export const renderClaims = (claims: readonly Claim[]): string[] =>
  claims.map(({ weight, holds, text }) => {
    if (weight === "reported") return `${INDENT}${paint("dim", holds ? "· yes" : "· no ")}  ${text}`
    return `${INDENT}${markOf(holds)}  ${holds ? text : paint("red", text)}`
  })

/** The demo's outcome, and the files that are kept. @param isForgotten the session was removed from the user's list */
export const renderEnd = (place: Place, taskID: string, passed: boolean, isForgotten: boolean): string[] => {
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
