import { ADDITIONS, FEATURE_NAMES, REQUESTS } from "../../test/support/model/request-scenario.ts"
import { estimateTokens } from "../../test/support/model/request-size.ts"
import type { Figure, Measurement, Results, Rows, Unit } from "./results.ts"

export const isPrecise = ({ precision, recall, leastPrecision, leastRecall }: Rows["detection"]): boolean =>
  precision >= leastPrecision && recall >= leastRecall

/** Three significant digits, and whole numbers from 100 on. */
const formatNumber = (value: number): string =>
  Math.abs(value) >= 100 ? Math.round(value).toLocaleString("en") : String(Number(value.toPrecision(3)))

export const formatValue = (value: number, unit: Unit): string =>
  `${formatNumber(value)}${unit === "×" || unit === "" ? unit : ` ${unit}`}`

type Cells = readonly (string | number)[]
const lineOf = (cells: Cells): string => `| ${cells.join(" | ")} |`

/** A Markdown table with numbers aligned right. */
const table = (head: Cells, rows: readonly Cells[]): string =>
  [head, head.map((_, index) => (index === 0 ? "---" : "---:")), ...rows].map(lineOf).join("\n")

const promise = (limit: string, isKept: boolean): string => (isKept ? limit : `${limit}, **missed**`)

const share = (kept: number, all: number): string => (kept === all ? `**${kept}/${all}**` : `${kept}/${all}`)

const figureCells = ({ what, version, unit, median, low, high, min, max, n, below }: Figure): Cells => {
  const interval = low === undefined || high === undefined ? "" : `${formatNumber(low)} … ${formatNumber(high)}`
  const extremes = `${formatNumber(min)} … ${formatNumber(max)}`
  const limit = below === undefined ? "" : promise(`< ${formatValue(below, unit)}`, median < below)
  return [what, version, `**${formatValue(median, unit)}**`, interval, extremes, n, limit]
}

export const figureLine = (figure: Figure): string => lineOf(figureCells(figure))

const KEPT_HEAD = ["Facts, plain", "Task named, plain", "Facts, Baton", "Task named, Baton"]
const LIVED_HEAD = (subject: string) =>
  ["Lived", "Task named", "Facts", "One more message answered"].map((what) => `${what}, ${subject}`)
const FIGURE_HEAD = ["Measured", "OpenCode", "Median", "95 % interval", "Min … max", "n", "Promised"]

/** Baton's row beside the plain one of the same case; a plain row gets none of its own. */
const besidePlain = <Row extends { version: string; bundle: "plain" | "baton" }>(
  row: Row,
  rows: readonly Row[],
  keysOf: (row: Row) => Cells,
  sharesOf: (row: Row) => Cells,
): Cells => {
  if (row.bundle === "plain") return []
  const isSameCase = (other: Row) => other.bundle === "plain" && keysOf(other).join() === keysOf(row).join()
  return [...keysOf(row), ...rows.filter(isSameCase).flatMap(sharesOf), ...sharesOf(row)]
}

/** Characters with their sign, and their estimated tokens; "0" is a request with identical bytes. */
const addition = (characters: number | undefined): string => {
  if (characters === undefined) return "0"
  const size = Math.abs(characters)
  return `**${characters < 0 ? "−" : "+"}${size.toLocaleString("en")} (${estimateTokens(size).toLocaleString("en")})**`
}

const TABLES: {
  [Kind in keyof Rows]: { head: Cells; cells: (row: Rows[Kind], rows: readonly Rows[Kind][]) => Cells }
} = {
  additions: {
    head: ["Request", "OpenCode", "Plain", ...FEATURE_NAMES.map((name) => ADDITIONS[name].name), "Whole bundle"],
    cells: ({ version, request, plain, added }) => {
      const columns = ([...FEATURE_NAMES, "bundle"] as const).map((column) => addition(added[column]))
      return [REQUESTS[request], version, plain.toLocaleString("en"), ...columns]
    },
  },
  beginnings: {
    head: ["Request", "OpenCode", "Parts of the task told, plain", "Parts of the task told, Baton"],
    cells: (row, rows) => {
      const told = ({ told, parts }: typeof row) => [share(told, parts)]
      return besidePlain(row, rows, ({ request, version }) => [request, version], told)
    },
  },
  retention: {
    head: ["Summariser", "OpenCode", "Compactions", ...KEPT_HEAD],
    cells: (row, rows) => {
      const kept = ({ factsKept, facts, turnsKnowingTask, turns }: typeof row) => [
        share(factsKept, facts),
        share(turnsKnowingTask, turns),
      ]
      return besidePlain(row, rows, ({ summariser, version, compactions }) => [summariser, version, compactions], kept)
    },
  },
  survival: {
    head: ["Summariser", "OpenCode", ...LIVED_HEAD("plain"), ...LIVED_HEAD("Baton")],
    cells: (row, rows) => {
      const lived = ({ compactions, lived, named, facts, isAnswered }: typeof row) => [
        share(lived, compactions),
        share(named, compactions),
        share(facts, compactions),
        isAnswered ? "yes" : "no: dead",
      ]
      return besidePlain(row, rows, ({ summariser, version }) => [summariser, version], lived)
    },
  },
  words: {
    head: ["Subject", "OpenCode", "Summariser", "Later words kept", "Of the newest five"],
    cells: (row) => {
      const { subject, version, summariser, compactions } = row
      if ("failure" in row) return [subject, version, summariser, `not measured: ${row.failure}`, ""]
      return [subject, version, summariser, share(row.kept, compactions), share(row.newest, Math.min(5, compactions))]
    },
  },
  drafts: {
    head: ["Beside the TUI", "OpenCode", "Once and in place", "Lost", "Doubled", "Misplaced", "Promised"],
    cells: ({ version, busyLoops, handoffs, arrived, lost, doubled, misplaced }) => {
      const beside = busyLoops === 0 ? "nothing" : `${busyLoops} busy loops`
      const isKept = arrived === handoffs && lost + doubled + misplaced === 0
      return [beside, version, share(arrived, handoffs), lost, doubled, misplaced, promise("all", isKept)]
    },
  },
  detection: {
    head: ["Set", "Messages", "To be stored", "Stored", "Precision", "Recall", "Right type", "Promised"],
    cells: (row) => {
      const { set, messages, labels, stored, precision, recall, rightType } = row
      const shares = [precision, recall, rightType].map((value) => `**${value.toFixed(3)}**`)
      const limit = `precision ≥ ${row.leastPrecision}, recall ≥ ${row.leastRecall}`
      return [set, messages, labels, stored, ...shares, promise(limit, isPrecise(row))]
    },
  },
  peers: {
    head: ["Subject", "OpenCode", "Facts kept, faithful", "Task named, careless", "Start ÷ plain OpenCode's"],
    cells: (row) => {
      if ("failure" in row) return [row.subject, row.version, `not measured: ${row.failure}`, "", ""]
      const { subject, version, compactions, facts, named, start } = row
      return [subject, version, share(facts, compactions), share(named, compactions), formatValue(start, "×")]
    },
  },
}

/** Names the cases in which another plugin is better than Baton. */
export const sayPeers = (rows: readonly Rows["peers"][]): string =>
  [...new Set(rows.map(({ version }) => version))]
    .map((version) => {
      const measured = rows.flatMap((row) => (row.version === version && !("failure" in row) ? [row] : []))
      const baton = measured.find(({ subject }) => subject === "Baton")
      const better = measured.flatMap(({ subject, facts, named, start }) => {
        if (!baton || !subject.includes("@")) return []
        const kinds = { "keeps more facts": facts > baton.facts, "names the task more often": named > baton.named }
        const all = Object.entries({ ...kinds, "starts faster": start < baton.start })
        return all.flatMap(([what, isBetter]) => (isBetter ? [`${subject} ${what}`] : []))
      })
      return `- Where another plugin is better than Baton on ${version}: ${better.join("; ") || "nowhere in this table"}.`
    })
    .join("\n")

const tableOf = <Kind extends keyof Rows>(kind: Kind, measured: Measurement): string[] => {
  const rows = measured[kind] as Rows[Kind][] | undefined
  const { head, cells } = TABLES[kind]
  const all = rows?.map((row) => cells(row, rows)).filter(({ length }) => length > 0)
  return all ? [table(head, all)] : []
}

export const tablesOf = (measured: Measurement): string[] => [
  ...(measured.figures.length > 0 ? [table(FIGURE_HEAD, measured.figures.map(figureCells))] : []),
  ...(measured.peers ? [sayPeers(measured.peers)] : []),
  ...(Object.keys(TABLES) as (keyof Rows)[]).flatMap((kind) => tableOf(kind, measured)),
]

/** Date, machine and load of a measurement. */
const describeConditions = ({ takenAt, machine, load }: Measurement): string =>
  `Taken ${takenAt.slice(0, 10)} on ${machine.cpu}, ${machine.cores} cores, ${machine.memoryGiB} GiB, ${machine.system}; load average ${load.before} before and ${load.after} after.`

/**
 * Inserts the tables of the results between `<!-- bench:NAME -->` and `<!-- /bench:NAME -->` in a page; the rest of the page is
 * written by hand and stays. Pure: the same results give the same page.
 *
 * @throws when the page has no place for a measurement
 */
export const renderDocument = (page: string, { measurements }: Results): string =>
  Object.entries(measurements).reduce((text, [name, measured]) => {
    const [opening, closing] = [`<!-- bench:${name} -->`, `<!-- /bench:${name} -->`]
    const start = text.indexOf(opening)
    const end = text.indexOf(closing)
    if (start < 0 || end < start) throw new Error(`the page has no place for ${name}: expected ${opening} … ${closing}`)
    const parts = [opening, describeConditions(measured), ...tablesOf(measured)]
    return `${text.slice(0, start)}${parts.join("\n\n")}\n\n${text.slice(end)}`
  }, page)
