import type { Claim } from "./claims.ts"
import type { Knowledge } from "./knowledge.ts"
import type { LedgerTask, RecordedCompaction } from "./ledger-view.ts"
import type { Paint } from "./paint.ts"
import { WIDTH } from "./progress.ts"

const cut = (text: string, width: number): string => (text.length > width ? `${text.slice(0, width - 1)}…` : text)

const COLUMNS = [
  ["task ID", "task"],
  ["role", "role"],
  ["done when", "definitionOfDone"],
  ["constraint", "constraint"],
] as const satisfies readonly (readonly [string, keyof Knowledge])[]

const LABEL_WIDTH = 36

/** One row for each compaction: what the model was told in the turn after it. */
export const renderKnowledge = (rows: readonly Knowledge[], kinds: readonly string[], paint: Paint): string[] => {
  const cell = (title: string, holds: boolean): string => {
    const left = Math.floor((title.length - 1) / 2)
    const mark = holds ? paint.green("✓") : paint.red("✗")
    return `${" ".repeat(left)}${mark}${" ".repeat(title.length - 1 - left)}`
  }
  const head = COLUMNS.map(([title]) => title).join("   ")
  return [
    paint.dim(`   ${"after compaction".padEnd(LABEL_WIDTH)}${head}`),
    ...rows.map((knowledge, index) => {
      const label = `${index + 1}  ${kinds[index] ?? "a summary"}`.padEnd(LABEL_WIDTH)
      return `   ${label}${COLUMNS.map(([title, name]) => cell(title, knowledge[name])).join("   ")}`.trimEnd()
    }),
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

const SHOWN_HANDOFF_LINES = 6
const SHOWN_LOG_LINES = 3
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
  const parts: [string, string[], (text: string) => string][] = [
    ["task", meaningful(shown.slice(0, at)).filter((line) => !LEFT_OUT.test(line)), (text) => text],
    ["specification", meaningful(specification), paint.cyan],
    ["handoff", shortenHandoff(meaningful(task.description.replace(specification, ""))), paint.yellow],
    ["done when", meaningful(logAt < 0 ? after : after.slice(0, logAt)).slice(1), paint.green],
    ["log", logAt < 0 ? [] : shortenLog(meaningful(after.slice(logAt)).slice(1)), (text) => text],
  ]
  return parts.flatMap(([name, lines, colour]) =>
    lines.map((line, index) => {
      const label = (index === 0 ? name : "").padStart(GUTTER_WIDTH)
      const text = cut(line, WIDTH - GUTTER_WIDTH - 6)
      return `   ${paint.dim(label)} ${colour("│")} ${text.startsWith("⋯") || text.startsWith("  ⋯") ? paint.dim(text) : text}`
    }),
  )
}

export const renderClaims = (claims: readonly Claim[], paint: Paint): string[] =>
  claims.map(({ weight, holds, text }) => {
    if (weight === "reported") return `   ${paint.dim(holds ? "· yes" : "· no ")}  ${text}`
    return `   ${holds ? paint.green("✓") : paint.red("✗")}  ${holds ? text : paint.red(text)}`
  })
