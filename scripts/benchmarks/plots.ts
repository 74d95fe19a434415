import { renderBarPlot } from "./bar-plot.ts"
import { renderLinePlot, type Series } from "./line-plot.ts"
import { peerCostPlot, peerRetentionPlot } from "./peer-plots.ts"
import { BENCHMARKS, type Figure, type Measurement, type Results, type RetentionRow } from "./results.ts"
import { soakPlots } from "./soak/soak-plots.ts"
import { formatValue } from "./table.ts"

const versionsOf = (items: readonly { version: string }[]): string[] => [
  ...new Set(items.map(({ version }) => version)),
]

const percent = (part: number, whole: number): number | null => (whole === 0 ? null : (part / whole) * 100)

const retentionPlot = (rows: readonly RetentionRow[]): string => {
  const compactions = [...new Set(rows.map((row) => row.compactions))].sort((a, b) => a - b)
  const series = (summariser: RetentionRow["summariser"], read: (row: RetentionRow) => number | null): Series[] =>
    (["baton", "plain"] as const).flatMap((bundle) =>
      versionsOf(rows).map((version) => ({
        name: `${bundle === "baton" ? "Baton" : "plain OpenCode"}, ${version}`,
        dashed: bundle === "plain",
        values: compactions.map((count) => {
          const row = rows.find(
            (each) =>
              each.bundle === bundle &&
              each.version === version &&
              each.summariser === summariser &&
              each.compactions === count,
          )
          return row ? read(row) : null
        }),
      })),
    )
  const task = (row: RetentionRow) => percent(row.turnsKnowingTask, row.turns)
  const facts = (row: RetentionRow) => percent(row.factsKept, row.facts)
  return renderLinePlot({
    title: "What is left after N compactions, with a faithful and a careless summariser",
    description: "Share of turns that name the task and of facts kept, with Baton and in plain OpenCode.",
    xAxis: "compactions in one run",
    yAxis: "share, %",
    xLabels: compactions.map(String),
    yMax: 100,
    panels: [
      { title: "Task named after a compaction, faithful", series: series("faithful", task) },
      { title: "Task named after a compaction, careless", series: series("careless", task) },
      { title: "Facts kept at the end, faithful", series: series("faithful", facts) },
      { title: "Facts kept at the end, careless", series: series("careless", facts) },
    ],
  })
}

const HOOK_SERIES = [
  { key: "later", name: "without prog's time" },
  { key: "first", name: "first of a session" },
]
const HOOK_SIZES = [10, 1_000, 10_000]

const hookPlot = (figures: readonly Figure[]): string => {
  const medianOf = (id: string, version: string): number | null =>
    figures.find((figure) => figure.id === id && figure.version === version)?.median ?? null
  const limit = figures.find(({ id }) => id === `hook.later.${HOOK_SIZES[0]}`)?.below
  return renderLinePlot({
    title: "The compacting hook does not grow with the session",
    description: "Median milliseconds of the compacting hook at 10, 1,000 and 10,000 messages.",
    xAxis: "messages in the session",
    yAxis: "ms, median",
    xLabels: HOOK_SIZES.map((size) => size.toLocaleString("en")),
    yMax: 30,
    ...(limit === undefined ? {} : { limit: { value: limit, name: `promised: under ${limit} ms` } }),
    panels: HOOK_SERIES.map(({ key, name }) => ({
      title: `Hook, ${name}`,
      series: versionsOf(figures).map((version, index) => ({
        name: `OpenCode ${version}`,
        dashed: index > 0,
        values: HOOK_SIZES.map((size) => medianOf(`hook.${key}.${size}`, version)),
      })),
    })),
  })
}

/** Every promised figure of speed as a share of its limit. */
const targetsPlot = (measurements: readonly Measurement[]): string => {
  const figures = measurements.flatMap(({ requirement, figures: own }) =>
    own.flatMap((figure) =>
      figure.below === undefined || ["characters", "MB", "%"].includes(figure.unit)
        ? []
        : [{ ...figure, below: figure.below, requirement }],
    ),
  )
  const versions = versionsOf(figures)
  return renderBarPlot({
    title: "Promised speed: median as a share of its limit",
    description:
      "Each bar is a measured median divided by what is promised, up to three times that; whiskers are 95 % intervals.",
    xAxis: "share of the limit (left of the line: promise kept)",
    groups: versions.map((version) => `OpenCode ${version}`),
    bars: figures.map(({ what, version, unit, median, low, high, below }) => ({
      name: what.replaceAll("`", "").replace(/ \(.*\)/, ""),
      value: median / below,
      ...(low === undefined || high === undefined ? {} : { low: low / below, high: high / below }),
      label: formatValue(median, unit),
      group: versions.indexOf(version),
    })),
  })
}

const peerPlots = (measurement: Measurement | undefined): Record<string, string> =>
  measurement?.peers
    ? {
        "peers.svg": peerCostPlot(measurement.figures, measurement.peers),
        "peers-retention.svg": peerRetentionPlot(measurement.peers),
      }
    : {}

/** The pictures of docs/benchmarks.md by file name, as far as there are figures for them. */
export const renderPlots = ({ measurements }: Results): Record<string, string> => {
  const all = BENCHMARKS.flatMap((name) => measurements[name] ?? [])
  return {
    ...(all.length > 0 ? { "promises.svg": targetsPlot(all) } : {}),
    ...(measurements.hook ? { "hook.svg": hookPlot(measurements.hook.figures) } : {}),
    ...(measurements.retention?.retention ? { "retention.svg": retentionPlot(measurements.retention.retention) } : {}),
    ...peerPlots(measurements.peers),
    ...(measurements.soak?.soak ? soakPlots(measurements.soak.soak) : {}),
  }
}
