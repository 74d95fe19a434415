import { type LinePlot, renderLinePlot, type Series } from "../line-plot.ts"
import { median } from "../statistics.ts"
import type { SessionSoak, Soak } from "./soak-result.ts"

const TENTHS = 10

/** The medians of at most ten equal runs of values. */
const byTenths = (values: readonly number[]): number[] => {
  const count = Math.min(TENTHS, values.length)
  return Array.from({ length: count }, (_, tenth) =>
    median(
      values.slice(Math.floor((tenth * values.length) / count), Math.floor(((tenth + 1) * values.length) / count)),
    ),
  )
}

const seriesOf = (sessions: readonly SessionSoak[], what: string): Series[] =>
  sessions.map(({ version, lines }, index) => ({
    name: `OpenCode ${version}`,
    dashed: index > 0,
    values: byTenths(lines.find((line) => line.what === what)?.values ?? []),
  }))

const plot = (
  { sessions }: Soak,
  about: Pick<LinePlot, "title" | "description" | "yAxis" | "yMax">,
  panels: Record<string, string>,
): string => {
  const at = sessions[0]?.at ?? []
  const count = Math.min(TENTHS, at.length)
  return renderLinePlot({
    ...about,
    xAxis: "compactions of one session, up to",
    xLabels: Array.from({ length: count }, (_, tenth) =>
      String(at[Math.floor(((tenth + 1) * at.length) / count) - 1] ?? ""),
    ),
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
