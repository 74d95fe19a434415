import { ADDITIONS, FEATURE_NAMES, REQUESTS } from "../../test/support/request-scenario.ts"
import { peerTables } from "./peer-tables.ts"
import {
  type AdditionRow,
  type BeginningRow,
  type DetectionRow,
  type DraftRow,
  type Figure,
  isPrecise,
  LEAST_PRECISION,
  LEAST_RECALL,
  losesNoDraft,
  type Measurement,
  meetsTarget,
  type RetentionRow,
} from "./results.ts"
import { soakTables } from "./soak/soak-tables.ts"
import { formatAddition, formatNumber, formatValue, table } from "./table.ts"

const limitOf = (figure: Figure): string => {
  if (figure.below === undefined) return ""
  const limit = `< ${formatValue(figure.below, figure.unit)}`
  return meetsTarget(figure) ? limit : `${limit}, **missed**`
}

/** One row a figure: median, its interval, extremes, n and the promise. */
export const figureTable = (figures: readonly Figure[]): string =>
  table(
    ["Measured", "OpenCode", "Median", "95 % interval", "Min … max", "n", "Promised"],
    figures.map((figure) => {
      const { what, version, unit, median, low, high, min, max, n } = figure
      const interval = low === undefined || high === undefined ? "" : `${formatNumber(low)} … ${formatNumber(high)}`
      const extremes = `${formatNumber(min)} … ${formatNumber(max)}`
      return [what, version, `**${formatValue(median, unit)}**`, interval, extremes, String(n), limitOf(figure)]
    }),
  )

const share = (kept: number, all: number): string => (kept === all ? `**${kept}/${all}**` : `${kept}/${all}`)

/** One row a version, summariser and number of compactions; plain OpenCode beside Baton. */
export const retentionTable = (rows: readonly RetentionRow[]): string => {
  const cells = (row: RetentionRow | undefined): string[] =>
    row ? [share(row.factsKept, row.facts), share(row.turnsKnowingTask, row.turns)] : ["", ""]
  const isSameCase = (a: RetentionRow) => (b: RetentionRow) =>
    a.version === b.version && a.summariser === b.summariser && a.compactions === b.compactions
  const cases = rows.filter((row, index) => rows.findIndex(isSameCase(row)) === index)
  return table(
    ["Summariser", "OpenCode", "Compactions", "Facts, plain", "Task named, plain", "Facts, Baton", "Task named, Baton"],
    cases.map((each) => {
      const [plain, baton] = (["plain", "baton"] as const).map((bundle) =>
        rows.filter(isSameCase(each)).find((row) => row.bundle === bundle),
      )
      return [each.summariser, each.version, String(each.compactions), ...cells(plain), ...cells(baton)]
    }),
  )
}

/** One row a request and version; plain OpenCode beside Baton. */
const beginningTable = (rows: readonly BeginningRow[]): string =>
  table(
    ["Request", "OpenCode", "Parts of the task told, plain", "Parts of the task told, Baton"],
    rows
      .filter(({ bundle }) => bundle === "baton")
      .map((row) => {
        const { version, request, told, parts } = row
        const plain = rows.find(
          (each) => each.bundle === "plain" && each.version === version && each.request === request,
        )
        return [request, version, plain ? share(plain.told, plain.parts) : "", share(told, parts)]
      }),
  )

/** One row for an idle machine and one for a busy one; the promise is that every draft arrives. */
export const draftTable = (rows: readonly DraftRow[]): string =>
  table(
    ["Beside the TUI", "OpenCode", "Once and in place", "Lost", "Doubled", "Misplaced", "Promised"],
    rows.map((row) => {
      const { version, busyLoops, handoffs, arrived, lost, doubled, misplaced } = row
      const beside = busyLoops === 0 ? "nothing" : `${busyLoops} busy loops`
      const limit = losesNoDraft(row) ? "all" : "all, **missed**"
      return [beside, version, share(arrived, handoffs), String(lost), String(doubled), String(misplaced), limit]
    }),
  )

/** One row a labelled set. */
export const detectionTable = (rows: readonly DetectionRow[]): string =>
  table(
    ["Set", "Messages", "To be stored", "Stored", "Precision", "Recall", "Right type", "Promised"],
    rows.map((row) => {
      const { set, messages, labels, stored, precision, recall, rightType } = row
      const limit = `precision ≥ ${LEAST_PRECISION}, recall ≥ ${LEAST_RECALL}`
      const shares = [precision, recall, rightType].map((value) => `**${value.toFixed(3)}**`)
      return [
        set,
        ...[messages, labels, stored].map(String),
        ...shares,
        isPrecise(row) ? limit : `${limit}, **missed**`,
      ]
    }),
  )

/** One row a request and version, one column a feature; "0" is a request that is the same byte for byte. */
export const additionTable = (rows: readonly AdditionRow[]): string =>
  table(
    ["Request", "OpenCode", "Plain", ...FEATURE_NAMES.map((name) => ADDITIONS[name].name), "Whole bundle"],
    rows.map(({ version, request, plain, added }) => {
      const columns = [...FEATURE_NAMES, "bundle"] as const
      const cells = columns.map((column) => {
        const characters = added[column]
        return characters === undefined ? "0" : `**${formatAddition(characters)}**`
      })
      return [REQUESTS[request], version, plain.toLocaleString("en"), ...cells]
    }),
  )

/** Every table of a measurement. */
export const tablesOf = (measurement: Measurement): string[] => {
  const { figures, retention, beginnings, drafts, detection, additions, peers, soak } = measurement
  return [
    ...(peers ? peerTables(figures, peers) : []),
    ...(additions ? [additionTable(additions)] : []),
    ...(figures.length > 0 && !peers ? [figureTable(figures)] : []),
    ...(beginnings ? [beginningTable(beginnings)] : []),
    ...(retention ? [retentionTable(retention)] : []),
    ...(drafts ? [draftTable(drafts)] : []),
    ...(detection ? [detectionTable(detection)] : []),
    ...(soak ? soakTables(soak) : []),
  ]
}

/** When and on what it was measured. */
export const describeConditions = ({ takenAt, machine, load }: Measurement): string =>
  `Taken ${takenAt.slice(0, 10)} on ${machine.cpu}, ${machine.cores} cores, ${machine.memoryGiB} GiB, ${machine.system}; load average ${load.before} before and ${load.after} after.`
