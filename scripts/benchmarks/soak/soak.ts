import { NEWEST, OLDEST, type OpenCodeBinary } from "../../../test/support/opencode-binary.ts"
import type { Benchmark } from "../benchmark.ts"
import { type Figure, toFigure } from "../results.ts"
import { median, pairRatios } from "../statistics.ts"
import type { Both } from "./arm.ts"
import { type LongSession, measureLongSession } from "./long-session.ts"
import { type ManySessions, measureManySessions, type ServerPoint } from "./many-sessions.ts"
import type { Sample } from "./sample.ts"
import {
  KILO,
  type Line,
  MEGA,
  type ServerRow,
  type SessionSoak,
  type Soak,
  totalDescriptors,
  WHOLE,
} from "./soak-result.ts"
import { firstAndLastTenth } from "./trend.ts"

const SAMPLE_EVERY = 10

type Extent = { readonly compactions: number; readonly directories: number; readonly each: number }

const { compactions, directories, sessions } = WHOLE
const RUNS: readonly { binary: OpenCodeBinary; extent: Extent }[] = [
  { binary: NEWEST, extent: { compactions, directories, each: sessions / directories } },
  // Each message of a session lengthens every later turn of plain OpenCode there: the whole would take hours.
  { binary: OLDEST, extent: { compactions: 60, directories: 2, each: 3 } },
]
const QUICK: Extent = { compactions: 20, directories: 3, each: 2 }
/** What a quantity may gain in 100 compactions; nothing that is counted may gain anything. */
const HEAP_MB = 1
const COUNT = 0.5
const STATE_KB = 5
/** What a server may hold more after 200 sessions than before them. */
const LEFT_HEAP_MB = 10
const LEFT_JOURNALS_KB = 1
const RATIO = 1.5

const rounded = (value: number): number => Number(value.toPrecision(6))

const bundleOnly =
  (read: (sample: Sample) => number) =>
  (both: Both<Sample>): number =>
    rounded(read(both.with) - read(both.without))

const heapMB = bundleOnly(({ heapBytes }) => heapBytes / MEGA)
const residentMB = bundleOnly(({ residentBytes }) => residentBytes / MEGA)
const descriptors = bundleOnly(totalDescriptors)
const sockets = bundleOnly((sample) => sample.descriptors.socket ?? 0)
const children = bundleOnly((sample) => sample.children)
const timers = bundleOnly((sample) => sample.timers)
const collections = bundleOnly((sample) => sample.collections)

const toSession = ({ version, messages, points, turnMs }: LongSession): SessionSoak => {
  const line = (
    what: string,
    unit: Line["unit"],
    read: (point: LongSession["points"][number]) => number,
    below?: number,
  ) => ({
    what,
    unit,
    values: points.map((point) => rounded(read(point))),
    ...(below === undefined ? {} : { below }),
  })
  const each = turnMs.with.length / points.length
  const turns = (what: string, ms: readonly number[]): Line => ({
    what,
    unit: "ms",
    values: points.map((_, index) => rounded(median(ms.slice(index * each, (index + 1) * each)))),
  })
  return {
    version,
    messages,
    at: points.map(({ compactions }) => compactions),
    lines: [
      line("heap, the bundle's part", "MB", heapMB, HEAP_MB),
      line("heap, plain OpenCode", "MB", ({ without }) => without.heapBytes / MEGA),
      line("resident, the bundle's part", "MB", residentMB),
      line("resident, plain OpenCode", "MB", ({ without }) => without.residentBytes / MEGA),
      line("maps and sets, the bundle's part", "", collections, COUNT),
      line("open descriptors, the bundle's part", "", descriptors, COUNT),
      line("child processes", "", children, COUNT),
      line("waiting timers", "", timers, COUNT),
      line("the session's journal", "KB", ({ state }) => state.journalBytes / KILO, STATE_KB),
      line("the statefile", "KB", ({ state }) => state.statefileBytes / KILO, STATE_KB),
      line("`.opencode/state`, all of it", "KB", ({ state }) => state.stateBytes / KILO, STATE_KB),
      line("the ledger, which keeps a line for each compaction", "KB", ({ state }) => state.ledgerBytes / KILO),
      line("the compacting hook", "ms", (point) => median(point.with.hookMs)),
      turns("a turn with its compaction", turnMs.with),
      turns("the same in plain OpenCode", turnMs.without),
    ],
  }
}

const ratioFigure = (id: string, what: string, version: string, values: readonly number[], below?: number): Figure => {
  const { first, last } = firstAndLastTenth(values)
  return toFigure({ id, what, version, unit: "×", ...(below === undefined ? {} : { below }) }, pairRatios(first, last))
}

const toFigures = ({ version, points, turnMs }: LongSession): Figure[] => {
  const hookMs = points.flatMap((point) => point.with.hookMs)
  const added = turnMs.with.map((ms, round) => ms - (turnMs.without[round] ?? 0))
  return [
    toFigure({ id: "soak.hook", what: "one compacting hook", version, unit: "ms" }, hookMs),
    ratioFigure("soak.hook-ratio", "the compacting hook, last ÷ first tenth", version, hookMs, RATIO),
    toFigure({ id: "soak.turn", what: "one turn with its compaction", version, unit: "ms" }, turnMs.with),
    toFigure({ id: "soak.added", what: "what the bundle adds to it", version, unit: "ms" }, added),
    ratioFigure("soak.added-ratio", "what the bundle adds, last ÷ first tenth", version, added, RATIO),
    ratioFigure("soak.turn-ratio", "a turn with its compaction, last ÷ first tenth", version, turnMs.with),
    ratioFigure("soak.plain-ratio", "the same in plain OpenCode, last ÷ first tenth", version, turnMs.without),
  ]
}

const toRows = ({ version, directories, before, points, deleted, disposed }: ManySessions): ServerRow[] => {
  const open = points.at(-1)
  if (!open) throw new Error("expected a point with open sessions")
  type Read = (point: ServerPoint) => number
  const row = (what: string, unit: Line["unit"], read: Read, below?: number): ServerRow => ({
    version,
    what,
    unit,
    directories,
    sessions: open.sessions,
    before: read(before),
    open: read(open),
    deleted: read(deleted),
    disposed: read(disposed),
    ...(below === undefined ? {} : { below }),
  })
  return [
    row("heap, the bundle's part", "MB", heapMB, LEFT_HEAP_MB),
    row("resident, the bundle's part", "MB", residentMB),
    row("maps and sets, the bundle's part", "", collections, directories),
    row("open descriptors, the bundle's part", "", descriptors, 1),
    row("of these, sockets", "", sockets),
    row("child processes", "", children, 1),
    row("waiting timers", "", timers, 1),
    row("journals", "KB", ({ state }) => state.journalBytes / KILO, LEFT_JOURNALS_KB),
    row("`.opencode/state`, all of them", "KB", ({ state }) => state.stateBytes / KILO),
    row("files in them", "", ({ state }) => state.files),
  ]
}

/** What stays flat: one session through hundreds of compactions, and a server with hundreds of sessions. */
export const measureSoak: Benchmark = async ({ quick, say }) => {
  const soak: Soak = { sessions: [], servers: [] }
  const figures: Figure[] = []
  for (const { binary, extent } of RUNS) {
    const { compactions: rounds, directories: folders, each } = quick ? QUICK : extent
    say(`soak on ${binary.version}: one session through ${rounds} compactions`)
    const long = await measureLongSession(binary, { rounds, sampleEvery: SAMPLE_EVERY, say })
    soak.sessions.push(toSession(long))
    figures.push(...toFigures(long))
    say(`soak on ${binary.version}: ${folders * each} sessions in ${folders} directories`)
    soak.servers.push(...toRows(await measureManySessions(binary, { directories: folders, each, say })))
  }
  return { figures, soak }
}
