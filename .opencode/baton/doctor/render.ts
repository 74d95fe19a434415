import type { Status } from "./finding.ts"
import type { Report } from "./report.ts"

const COLORS: Record<Status, number> = { ok: 32, warning: 33, broken: 31 }

/** A path or a program's words may hold anything; a terminal must not act on it. */
const printable = (text: string): string => text.replace(/\p{Cc}+/gu, " ")

export const renderJSON = (report: Report): string => `${JSON.stringify(report, null, 2)}\n`

/** One line a finding, its fix below it, a count at the end. */
export const renderText = (report: Report, options: { color: boolean }): string => {
  const idWidth = Math.max(0, ...report.findings.map((finding) => finding.id.length))
  const paint = (status: Status, text: string) => (options.color ? `\u001b[${COLORS[status]}m${text}\u001b[0m` : text)
  const lines = report.findings.flatMap(({ id, status, message, fix }) => {
    const head = `  ${paint(status, status.padEnd("warning".length))}  ${id.padEnd(idWidth)}  `
    const indent = " ".repeat("  warning  ".length + idWidth + 2)
    const found = `${head}${printable(message)}`
    return fix === undefined ? [found] : [found, `${indent}fix: ${printable(fix)}`]
  })
  const { ok, warning, broken } = report.summary
  const verdict = `${broken} broken, ${warning} ${warning === 1 ? "warning" : "warnings"}, ${ok} ok`
  return [`Baton in ${printable(report.directory)}`, "", ...lines, "", verdict, ""].join("\n")
}
