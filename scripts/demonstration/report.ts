import type { Claim } from "./claims.ts"
import type { FirstRequest, Knowledge } from "./knowledge.ts"
import type { LedgerTask, RecordedCompaction } from "./ledger-view.ts"
import type { Paint } from "./paint.ts"
import { WIDTH } from "./progress.ts"
import { linesBelow, STANDING } from "./standing.ts"

const cut = (text: string, width: number): string => (text.length > width ? `${text.slice(0, width - 1)}…` : text)

const COLUMNS = [
  ["task ID", "task"],
  ["role", "role"],
  ["specification", "specification"],
  ["done when", "definitionOfDone"],
  ["constraint", "constraint"],
] as const satisfies readonly (readonly [string, keyof Knowledge])[]

const LABEL_WIDTH = 36

/** @param kinds of the summaries, in order */
const momentsOf = (told: readonly FirstRequest[], kinds: readonly string[]): string[] => {
  const left = [...kinds]
  return told.map(({ after }, index) => {
    if (after === "compaction") return `after ${left.shift() ?? "a summary"}`
    return index === 0 ? "at the beginning" : "after kill -9, in a new session"
  })
}

/** One row for each moment at which a model knows nothing but its request: what that told. */
export const renderKnowledge = (told: readonly FirstRequest[], kinds: readonly string[], paint: Paint): string[] => {
  const cell = (title: string, holds: boolean): string => {
    const left = Math.floor((title.length - 1) / 2)
    const mark = holds ? paint.green("✓") : paint.red("✗")
    return `${" ".repeat(left)}${mark}${" ".repeat(title.length - 1 - left)}`
  }
  const row = (moment: string, cells: readonly string[]): string =>
    `   ${moment.padEnd(LABEL_WIDTH)}${cells.join("   ")}`.trimEnd()
  const moments = momentsOf(told, kinds)
  return [
    paint.dim(
      row(
        "",
        COLUMNS.map(([title]) => title),
      ),
    ),
    ...told.map(({ knowledge }, at) =>
      row(
        moments[at] ?? "",
        COLUMNS.map(([title, name]) => cell(title, knowledge[name])),
      ),
    ),
  ]
}

/** One line for each compaction in the ledger, with its time in UTC. */
export const renderTimeline = (recorded: readonly RecordedCompaction[], paint: Paint): string[] => {
  if (recorded.length === 0) return [paint.red("   no compaction is recorded")]
  return recorded.map(
    ({ number, at, line }) =>
      `   ${paint.dim(at.slice(11, 19))}  ${paint.yellow(String(number))}  ${cut(line, WIDTH - 16)}`,
  )
}

type Part = readonly [name: string, lines: readonly string[], colour: (text: string) => string]

/** Lines with their names in a gutter. */
const renderParts = (parts: readonly Part[], paint: Paint): string[] =>
  parts.flatMap(([name, lines, colour]) =>
    lines.map((line, index) => {
      const label = (index === 0 ? name : "").padStart(GUTTER_WIDTH)
      const text = cut(line, WIDTH - GUTTER_WIDTH - 6)
      return `   ${paint.dim(label)} ${colour("│")} ${text.startsWith("⋯") || text.startsWith("  ⋯") ? paint.dim(text) : text}`
    }),
  )

/** What the first request after the crash says of where the work stood, shortened. */
export const renderStanding = (conversation: string, paint: Paint): string[] =>
  renderParts(
    Object.entries(STANDING).map(([name, heading]) => {
      const lines = linesBelow(conversation, heading).filter((line) => !/UTC: Compaction \d+: /.test(line))
      return [name, heading === STANDING["last handoff"] ? lines.slice(0, 2) : lines.slice(-1), paint.yellow]
    }),
    paint,
  )

const SHOWN_HANDOFF_LINES = 3
const SHOWN_LOG_LINES = 2
const GUTTER_WIDTH = 13

/** Lines of `prog show` that tell nothing here, and the headings that the gutter repeats. */
const LEFT_OUT = /^(?:Type|Project|Priority|Description):/

const meaningful = (text: string): string[] => text.split("\n").filter((line) => line.trim() !== "")

const shortenHandoff = (lines: readonly string[]): string[] => {
  if (lines.length <= SHOWN_HANDOFF_LINES + 2) return [...lines]
  return [
    ...lines.slice(0, SHOWN_HANDOFF_LINES),
    `⋯ ${lines.length - SHOWN_HANDOFF_LINES - 1} more lines`,
    ...lines.slice(-1),
  ]
}

const shortenLog = (lines: readonly string[]): string[] => {
  const shown = lines.filter((line) => !/\] Compaction \d+: /.test(line)).slice(-SHOWN_LOG_LINES)
  const left = lines.length - shown.length
  return left === 0 ? shown : [`  ⋯ ${left} more lines, the compactions above among them`, ...shown]
}

/**
 * The text of `prog show`, its parts named in a gutter; what is left out is said.
 *
 * @param specification the part of the description that is not the handoff
 */
export const renderShow = (shown: string, task: LedgerTask, specification: string, paint: Paint): string[] => {
  const at = shown.indexOf(task.description)
  if (at < 0 || task.description === "") return shown.split("\n").map((line) => `   ${cut(line, WIDTH - 3)}`)
  const after = shown.slice(at + task.description.length)
  const logAt = after.indexOf("\nLogs:")
  const parts: Part[] = [
    ["task", meaningful(shown.slice(0, at)).filter((line) => !LEFT_OUT.test(line)), (text) => text],
    ["specification", meaningful(specification), paint.cyan],
    ["handoff", shortenHandoff(meaningful(task.description.replace(specification, ""))), paint.yellow],
    ["done when", meaningful(logAt < 0 ? after : after.slice(0, logAt)).slice(1), paint.green],
    ["log", logAt < 0 ? [] : shortenLog(meaningful(after.slice(logAt)).slice(1)), (text) => text],
  ]
  return renderParts(parts, paint)
}

export const renderClaims = (claims: readonly Claim[], paint: Paint): string[] =>
  claims.map(({ weight, holds, text }) => {
    if (weight === "reported") return `   ${paint.dim(holds ? "· yes" : "· no ")}  ${text}`
    return `   ${holds ? paint.green("✓") : paint.red("✗")}  ${holds ? text : paint.red(text)}`
  })
