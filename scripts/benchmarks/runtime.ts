import { mkdtempSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { scoreDetection } from "../../test/support/learning-sets.ts"
import { openModelProject } from "../../test/support/opencode/model-project.ts"
import { NEWEST } from "../../test/support/opencode/opencode-binary.ts"
import { interleave } from "./measure.ts"
import { runInside } from "./project.ts"
import type { Benchmark } from "./results.ts"

const EVENT_US = 2
const LOOKUP_MS = 20
const LEARNINGS = 10_000

/** Measures one `message.part.delta` in OpenCode's runtime. */
export const measureEvent: Benchmark = async ({ binary, quick, figure }) => {
  const [calls, rounds] = quick ? [20_000, 2] : [200_000, 20]
  await using opened = await openModelProject(binary)
  const { directory } = opened.project
  const printed = await runInside(binary, "bundle-cost.ts", `${directory}/.opencode/plugins`, directory, calls, rounds)
  const what = `a token delta (mean of ${calls.toLocaleString("en")} calls a round)`
  figure("event.delta", what, "µs", printed("delta"), EVENT_US)
  figure("event.nothing", "an empty async function beside it", "µs", printed("nothing"))
}

/** Scores the detector on the labelled messages, and measures a look-up and the check of a message in OpenCode's runtime. */
export const measureLearning: Benchmark = async ({ binary, quick, figure, row }) => {
  const rounds = quick ? 3 : 30
  const printed = await runInside(binary, "learning-lookup.ts", LEARNINGS, rounds)
  figure("learning.lookup", "a look-up among 10,000 learnings", "ms", printed("lookup"), LOOKUP_MS)
  figure("learning.copy", "reading the copy of 10,000 learnings", "ms", printed("copy"))
  figure("learning.look", "the look at one message", "ms", printed("look"))
  // The detector does not depend on OpenCode: one run is enough.
  for (const score of binary === NEWEST ? scoreDetection() : []) row("detection", score)
}

const PUBLISHED_US = 50
const IGNORED_US = 2
const TO_FILE_MS = 100
const GROWTH_MB = 10
const EVENTS_PER_SECOND = 200

/** The 99th percentile. */
const p99 = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.ceil(values.length * 0.99) - 1] ?? Number.NaN

/** Measures the live state's cost in OpenCode, the delay to the statefile, and the growth of the process. */
export const measureLiveState: Benchmark = async ({ binary, quick, figure }) => {
  const run = (what: "cost" | "latencies" | "growth", ...args: readonly number[]) =>
    runInside(binary, "live-state-cost.ts", what, mkdtempSync(join(tmpdir(), "live-")), ...args)
  const shown = (count: number): string => count.toLocaleString("en")
  const [events, rounds] = quick ? [500, 2] : [5_000, 20]
  const [paced, pacedRounds] = quick ? [200, 2] : [1_000, 10]
  const [patches, writers] = quick ? [20_000, 1] : [1_000_000, 3]
  const cost = await run("cost", events, rounds)
  const toFile = async () => p99((await run("latencies", paced, EVENTS_PER_SECOND))("ms"))
  const { late } = await interleave({ late: toFile }, pacedRounds)
  const { growth } = await interleave({ growth: async () => p99((await run("growth", patches))("mb")) }, writers)
  const mean = `mean of ${shown(events)} a round`
  figure("live.published", `an event that is published (${mean})`, "µs", cost("published"), PUBLISHED_US)
  figure("live.ignored", `one that changes nothing (${mean})`, "µs", cost("ignored"), IGNORED_US)
  figure("live.to-file", `from the event to the file, 99 % of ${shown(paced)} events`, "ms", late, TO_FILE_MS)
  const grown = `the heap in use after ${shown(patches)} events, more than after a tenth`
  figure("live.growth", grown, "MB", growth, GROWTH_MB)
}
