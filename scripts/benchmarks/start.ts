import { BOTH_ENDS } from "../../test/support/opencode-binary.ts"
import { withBenchProject } from "./bench-project.ts"
import type { Benchmark } from "./benchmark.ts"
import { interleave } from "./interleave.ts"
import { toFigure } from "./results.ts"
import { pairRatios } from "./statistics.ts"

const START_RATIO = 1.03
const MESSAGES = {
  plain: "Say hello.",
  task: "# Worker\n\nTask: ts-b54507\n\nSay hello.\n",
}

/** A whole `opencode run` with one turn, with and without the bundle. */
export const measureStart: Benchmark = async ({ quick, say }) => {
  const rounds = quick ? 2 : 40
  const figures = []
  for (const binary of BOTH_ENDS) {
    const { version } = binary
    say(`start on ${version}: ${rounds} rounds of four runs`)
    const answer = () => ({ text: "Hello." })
    const values = await withBenchProject(binary, answer, { bundle: "none" }, (without) =>
      withBenchProject(binary, answer, { bundle: "project" }, async (withBundle) => {
        for (const { run } of [without, withBundle]) await run(MESSAGES.task)
        return interleave(
          {
            withoutPlain: async () => (await without.run(MESSAGES.plain)).durationMs,
            withPlain: async () => (await withBundle.run(MESSAGES.plain)).durationMs,
            withoutTask: async () => (await without.run(MESSAGES.task)).durationMs,
            withTask: async () => (await withBundle.run(MESSAGES.task)).durationMs,
          },
          rounds,
          (round) => {
            if (round % 10 === 0) say(`  ${round} of ${rounds} rounds`)
          },
        )
      }),
    )
    const ratio = { version, unit: "×", below: START_RATIO } as const
    const time = { version, unit: "ms" } as const
    figures.push(
      toFigure({ id: "start.without", what: "`opencode run`, without the bundle", ...time }, values.withoutPlain),
      toFigure({ id: "start.with", what: "`opencode run`, with the bundle", ...time }, values.withPlain),
      toFigure(
        { id: "start.ratio", what: "with ÷ without, no task", ...ratio },
        pairRatios(values.withoutPlain, values.withPlain),
      ),
      toFigure(
        { id: "start.task-ratio", what: "with ÷ without, message with a `Task:` line", ...ratio },
        pairRatios(values.withoutTask, values.withTask),
      ),
    )
  }
  return { figures }
}
