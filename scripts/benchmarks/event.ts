import { join } from "node:path"
import { BOTH_ENDS } from "../../test/support/opencode-binary.ts"
import { withBenchProject } from "./bench-project.ts"
import type { Benchmark } from "./benchmark.ts"
import { toFigure } from "./results.ts"
import { numbersIn, runAsBun } from "./run-as-bun.ts"

const EVENT_US = 2
const EVENT_COST = join(import.meta.dirname, "inside", "event-cost.ts")

/** What one `message.part.delta` costs in OpenCode's runtime. */
export const measureEvent: Benchmark = async ({ quick, say }) => {
  const calls = quick ? 20_000 : 200_000
  const rounds = quick ? 2 : 20
  const figures = []
  for (const binary of BOTH_ENDS) {
    const { version } = binary
    say(`event on ${version}: ${rounds} rounds of ${calls.toLocaleString("en")} token deltas`)
    const printed = await withBenchProject(
      binary,
      () => ({ text: "" }),
      {},
      async ({ project: { directory } }) =>
        runAsBun(binary, EVENT_COST, [
          join(directory, ".opencode", "plugins"),
          directory,
          String(calls),
          String(rounds),
        ]),
    )
    const about = { version, unit: "µs" } as const
    const perRound = `mean of ${calls.toLocaleString("en")} calls a round`
    figures.push(
      toFigure(
        { id: "event.delta", what: `a token delta (${perRound})`, below: EVENT_US, ...about },
        numbersIn(printed, "bundle"),
      ),
      toFigure(
        { id: "event.nothing", what: "an empty async function beside it", ...about },
        numbersIn(printed, "nothing"),
      ),
    )
  }
  return { figures }
}
