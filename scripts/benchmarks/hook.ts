import { join } from "node:path"
import { BOTH_ENDS, type OpenCodeBinary } from "../../test/support/opencode-binary.ts"
import { usePlugin, withBenchProject, withServer } from "./bench-project.ts"
import type { Benchmark, BenchmarkContext } from "./benchmark.ts"
import { bindTask, compact, countMessages, importSession, recordTemplate, sessionScript } from "./hook-sessions.ts"
import { interleave } from "./interleave.ts"
import { type Figure, toFigure } from "./results.ts"
import { pairRatios } from "./statistics.ts"

const HOOK_MS = 25
const HOOK_RATIO = 2
/** Room for 10,000 messages, so that nothing compacts by itself. */
const CONTEXT_TOKENS = 20_000_000

const SIZES = { short: 10, middle: 1_000, long: 10_000 } as const
type Size = keyof typeof SIZES
const SIZE_NAMES = Object.keys(SIZES) as Size[]

const eachSize = <T>(make: (size: Size) => T): Record<Size, T> => ({
  short: make("short"),
  middle: make("middle"),
  long: make("long"),
})

type Times = Record<Size, number[]>

const measureOn = async (
  binary: OpenCodeBinary,
  { quick, say }: BenchmarkContext,
): Promise<Record<"first" | "later" | "withLedger", Times>> => {
  const rounds = quick ? 2 : 20
  const firsts = quick ? 1 : 3
  return withBenchProject(binary, sessionScript, { context: CONTEXT_TOKENS }, async (opened) => {
    const template = await recordTemplate(opened)
    say(`hook on ${binary.version}: importing ${(firsts + 1) * SIZE_NAMES.length} sessions of 10 to 10,000 messages`)
    const sessions: Record<Size, string[]> = { short: [], middle: [], long: [] }
    for (let index = 0; index <= firsts; index++) {
      for (const size of SIZE_NAMES) {
        sessions[size].push(await importSession(opened, template, SIZES[size], index * 10 + SIZE_NAMES.indexOf(size)))
      }
    }
    const folder = usePlugin(opened, "timed-compacting.ts")
    const file = join(opened.project.home, "hook.jsonl")
    const session = (size: Size, index: number): string => sessions[size][index] ?? ""
    const bench = { BATON_BENCH_PLUGINS: folder, BATON_BENCH_FILE: file }

    const withoutLedger = await withServer(opened, { ...bench, BATON_BENCH_LEDGER: "stand-in" }, async (server) => {
      for (const size of SIZE_NAMES) {
        for (const id of sessions[size]) await bindTask(server, id)
        const found = await countMessages(server, session(size, 0), SIZES[size])
        if (found < SIZES[size]) throw new Error(`expected ${SIZES[size]} imported messages, found ${found}`)
      }
      say(`hook on ${binary.version}: the first compaction of ${firsts} sessions of each size`)
      // One before the clock counts: it loads zod and warms the code.
      await compact(server, session("short", 0), file)
      const first = await interleave(
        eachSize((size) => (round: number) => compact(server, session(size, round + 1), file)),
        firsts,
      )
      say(`hook on ${binary.version}: ${rounds} later compactions of each size`)
      for (const size of SIZE_NAMES) await compact(server, session(size, 0), file)
      const later = await interleave(
        eachSize((size) => () => compact(server, session(size, 0), file)),
        rounds,
      )
      return { first, later }
    })
    say(`hook on ${binary.version}: the same with the embedded ledger`)
    const withLedger = await withServer(opened, bench, async (server) => {
      await compact(server, session("short", 0), file)
      return interleave(
        eachSize((size) => () => compact(server, session(size, 0), file)),
        quick ? 1 : 10,
      )
    })
    return { ...withoutLedger, withLedger }
  })
}

const figuresOf = (version: string, id: string, what: string, times: Times, isPromised: boolean): Figure[] => [
  ...SIZE_NAMES.map((size) =>
    toFigure(
      {
        id: `hook.${id}.${SIZES[size]}`,
        what: `${what}, ${SIZES[size].toLocaleString("en")} messages`,
        version,
        unit: "ms",
        ...(isPromised ? { below: HOOK_MS } : {}),
      },
      times[size],
    ),
  ),
  toFigure(
    {
      id: `hook.${id}.ratio`,
      what: `${what}, 10,000 ÷ 10 messages`,
      version,
      unit: "×",
      ...(isPromised ? { below: HOOK_RATIO } : {}),
    },
    pairRatios(times.short, times.long),
  ),
]

/** The compacting hook in a real `opencode serve`, on sessions of 10, 1,000 and 10,000 messages. */
export const measureHook: Benchmark = async (context) => {
  const figures: Figure[] = []
  for (const binary of BOTH_ENDS) {
    const { first, later, withLedger } = await measureOn(binary, context)
    figures.push(
      ...figuresOf(binary.version, "later", "hook without prog's time", later, true),
      ...figuresOf(binary.version, "first", "first compaction of a session", first, true),
      ...figuresOf(binary.version, "ledger", "hook with the embedded ledger", withLedger, false),
    )
  }
  return { figures }
}
