import { formatNumber, formatValue, table } from "../table.ts"
import { isFlat, isLetGo, isWholeServer, isWholeSession, type Line, type Soak, trendOf, WHOLE } from "./soak-result.ts"

const shown = (value: number, unit: Line["unit"]): string =>
  unit === "" ? formatNumber(value) : formatValue(value, unit)
const signed = (value: number, unit: Line["unit"]): string => `${value > 0 ? "+" : ""}${shown(value, unit)}`

const promise = (text: string, isKept: boolean): string => (isKept ? text : `${text}, **missed**`)

const size = (text: string, isWhole: boolean, whole: string): string =>
  isWhole ? text : `${text} (**a short run**: ${whole} are meant)`

const number = (value: number): string => value.toLocaleString("en")

/** What was run, then a row for each quantity: how it began, how it ended, and how it changed along the way. */
const sessionTable = (sessions: Soak["sessions"]): string[] => [
  sessions
    .map((soak) => {
      const ran = `${number(soak.at.at(-1) ?? 0)} compactions and ${number(soak.messages)} messages`
      const whole = `${number(WHOLE.compactions)} and ${number(WHOLE.messages)}`
      return `One session on OpenCode ${soak.version}: ${size(ran, isWholeSession(soak), whole)}.`
    })
    .join(" "),
  table(
    ["Measured", "OpenCode", "First tenth", "Last tenth", "In 100 compactions", "95 % interval", "n", "Promised"],
    (sessions[0]?.lines ?? []).flatMap(({ what }) =>
      sessions.flatMap((soak) => {
        const line = soak.lines.find((each) => each.what === what)
        if (!line) return []
        const { first, last, slope, low, high, n } = trendOf(soak, line)
        const limit = line.below === undefined ? "" : `< ${signed(line.below, line.unit)}`
        return [
          [
            what,
            soak.version,
            shown(first, line.unit),
            shown(last, line.unit),
            `**${signed(slope, line.unit)}**`,
            `${formatNumber(low)} … ${formatNumber(high)}`,
            String(n),
            promise(limit, isFlat(soak, line)),
          ],
        ]
      }),
    ),
  ),
]

/** The same for the servers: before, with all sessions open, with all deleted, and after the dispose hooks. */
const serverTable = (rows: Soak["servers"]): string[] => {
  const [first] = rows
  if (!first) return []
  const whole = `${WHOLE.sessions} in ${WHOLE.directories}`
  const perVersion = rows.filter(({ what }) => what === first.what)
  return [
    perVersion
      .map((row) => {
        const ran = `${number(row.sessions)} sessions in ${row.directories} directories`
        return `One server of OpenCode ${row.version}: ${size(ran, isWholeServer(row), whole)}.`
      })
      .join(" "),
    table(
      ["Measured", "OpenCode", "Before", "All open", "All deleted", "Disposed", "Left, promised"],
      [...new Set(rows.map(({ what }) => what))].flatMap((what) =>
        rows
          .filter((row) => row.what === what)
          .map((row) => [
            what,
            row.version,
            ...[row.before, row.open, row.deleted, row.disposed].map((value) => shown(value, row.unit)),
            row.below === undefined ? "" : promise(`< ${signed(row.below, row.unit)}`, isLetGo(row)),
          ]),
      ),
    ),
  ]
}

export const soakTables = ({ sessions, servers }: Soak): string[] => [
  ...sessionTable(sessions),
  ...serverTable(servers),
]
