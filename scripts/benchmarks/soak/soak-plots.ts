import { type LinePlot, renderLinePlot, type Series } from "../line-plot.ts"
import { median } from "../statistics.ts"
import type { SessionSoak, Soak } from "./soak-result.ts"

const TENTHS = 10

/** The compactions at which the tenths of the longest session end; sessions of other lengths have their values at the same places. */
const tenthsOf = (sessions: readonly SessionSoak[]): number[] => {
  const [longest = []] = sessions.map(({ at }) => at).toSorted((one, other) => other.length - one.length)
  const count = Math.min(TENTHS, longest.length)
  return Array.from(
    { length: count },
    (_, tenth) => longest[Math.floor(((tenth + 1) * longest.length) / count) - 1] ?? 0,
  )
}

/** The medians of what was seen up to each of these compactions, behind the one before; null where nothing was. */
const mediansAt = (ends: readonly number[], at: readonly number[], values: readonly number[]): (number | null)[] =>
  ends.map((end, index) => {
    const begin = ends[index - 1] ?? 0
    const seen = values.filter((_, each) => (at[each] ?? 0) > begin && (at[each] ?? 0) <= end)
    return seen.length === 0 ? null : median(seen)
  })

const seriesOf = (sessions: readonly SessionSoak[], what: string): Series[] =>
  sessions.map(({ version, at, lines }, index) => ({
    name: `OpenCode ${version}`,
    dashed: index > 0,
    values: mediansAt(tenthsOf(sessions), at, lines.find((line) => line.what === what)?.values ?? []),
  }))

const plot = (
  { sessions }: Soak,
  about: Pick<LinePlot, "title" | "description" | "yAxis" | "yMax">,
  panels: Record<string, string>,
): string => {
  return renderLinePlot({
    ...about,
    xAxis: "compactions of one session, up to",
    xLabels: tenthsOf(sessions).map(String),
    panels: Object.entries(panels).map(([title, what]) => ({ title, series: seriesOf(sessions, what) })),
  })
}

/** The pictures of a soak by file name. */
export const soakPlots = (soak: Soak): Record<string, string> => ({
  "soak-memory.svg": plot(
    soak,
    {
      title: "Memory of the bundle along one session",
      description: "OpenCode's process with the bundle, less one without it that does the same; medians of tenths.",
      yAxis: "MB",
      yMax: 10,
    },
    {
      "Heap, the bundle's part": "heap, the bundle's part",
      "Resident memory, the bundle's part": "resident, the bundle's part",
    },
  ),
  "soak-handles.svg": plot(
    soak,
    {
      title: "Handles of the bundle along one session",
      description: "Open descriptors, child processes and waiting timers that the bundle adds; medians of tenths.",
      yAxis: "count",
      yMax: 10,
    },
    {
      "Open descriptors, the bundle's part": "open descriptors, the bundle's part",
      "Child processes": "child processes",
      "Waiting timers": "waiting timers",
    },
  ),
  "soak-hook.svg": plot(
    soak,
    {
      title: "The compacting hook along one session",
      description: "What OpenCode waits for before it asks for a summary; medians of tenths.",
      yAxis: "ms, median",
      yMax: 10,
    },
    { "The compacting hook": "the compacting hook" },
  ),
  "soak-latency.svg": plot(
    soak,
    {
      title: "Turns along one session",
      description: "A turn with its compaction, with the bundle and without it; medians of tenths.",
      yAxis: "ms, median",
      yMax: 10,
    },
    {
      "A turn with its compaction": "a turn with its compaction",
      "The same in plain OpenCode": "the same in plain OpenCode",
    },
  ),
})
