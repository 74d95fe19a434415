import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { BOTH_ENDS, type OpenCodeBinary } from "../../test/support/opencode-binary.ts"
import type { Benchmark } from "./benchmark.ts"
import { type Figure, toFigure } from "./results.ts"
import { numberIn, numbersIn, runAsBun } from "./run-as-bun.ts"

const PUBLISHED_US = 50
const IGNORED_US = 2
const TO_FILE_MS = 100
const GROWTH_MB = 10
const EVENTS_PER_SECOND = 200
const INSIDE = join(import.meta.dirname, "inside")

const withFolder = async <T>(act: (folder: string) => Promise<T>): Promise<T> => {
  const folder = await mkdtemp(join(tmpdir(), "baton-bench-"))
  try {
    return await act(folder)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

const repeat = async (rounds: number, measure: () => Promise<number>): Promise<number[]> => {
  const values: number[] = []
  for (let round = 0; round < rounds; round++) values.push(await measure())
  return values
}

/** The 99th of 100. */
const p99 = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.ceil(values.length * 0.99) - 1] ?? Number.NaN

const measureOn = async (binary: OpenCodeBinary, quick: boolean, say: (text: string) => void): Promise<Figure[]> => {
  const { version } = binary
  const rounds = quick ? 2 : 20
  const events = quick ? 500 : 5_000
  say(`live-state on ${version}: ${rounds} rounds of ${events.toLocaleString("en")} published events`)
  const cost = await runAsBun(binary, join(INSIDE, "publish-cost.ts"), [String(events), String(rounds)])
  const paced = quick ? 200 : 1_000
  say(`live-state on ${version}: ${paced.toLocaleString("en")} events at ${EVENTS_PER_SECOND} a second, ten times`)
  const toFile = await repeat(quick ? 2 : 10, () =>
    withFolder(async (folder) => {
      const args = [String(paced), String(EVENTS_PER_SECOND), folder]
      return p99(numbersIn(await runAsBun(binary, join(INSIDE, "event-to-file.ts"), args), "latencies"))
    }),
  )
  const patches = quick ? 20_000 : 1_000_000
  say(`live-state on ${version}: ${patches.toLocaleString("en")} patches to a writer, three times`)
  const growth = await repeat(quick ? 1 : 3, () =>
    withFolder(async (folder) => {
      const printed = await runAsBun(binary, join(INSIDE, "writer-memory.ts"), [String(patches), folder])
      return numberIn(printed, "late") - numberIn(printed, "early")
    }),
  )
  const mean = `mean of ${events.toLocaleString("en")} a round`
  return [
    toFigure(
      { id: "live.published", what: `an event that is published (${mean})`, version, unit: "µs", below: PUBLISHED_US },
      numbersIn(cost, "published"),
    ),
    toFigure(
      { id: "live.ignored", what: `one that changes nothing (${mean})`, version, unit: "µs", below: IGNORED_US },
      numbersIn(cost, "ignored"),
    ),
    toFigure(
      {
        id: "live.to-file",
        what: `from the event to the file, 99 % of ${paced.toLocaleString("en")} events`,
        version,
        unit: "ms",
        below: TO_FILE_MS,
      },
      toFile,
    ),
    toFigure(
      {
        id: "live.growth",
        what: `the writer's memory after ${patches.toLocaleString("en")} patches, more than after a tenth`,
        version,
        unit: "MB",
        below: GROWTH_MB,
      },
      growth,
    ),
  ]
}

/** What the live state costs OpenCode, how old a statefile is, and whether its writer grows. */
export const measureLiveState: Benchmark = async ({ quick, say }) => {
  const figures: Figure[] = []
  for (const binary of BOTH_ENDS) figures.push(...(await measureOn(binary, quick, say)))
  return { figures }
}
