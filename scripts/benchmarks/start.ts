import { BOTH_ENDS } from "../../test/support/opencode-binary.ts"
import type { Script } from "../../test/support/scripted-model.ts"
import { type BenchProject, withBenchProject } from "./bench-project.ts"
import type { Benchmark } from "./benchmark.ts"
import { interleave } from "./interleave.ts"
import { toFigure } from "./results.ts"
import { pairRatios } from "./statistics.ts"

const START_RATIO = 1.03
const MESSAGES = {
  plain: "Say hello.",
  task: "# Worker\n\nTask: ts-b54507\n\nSay hello.\n",
}

type Subject = "withoutPlain" | "withPlain" | "withoutTask" | "withTask"

/** A whole `opencode run` with one turn, with and without the bundle, and the part of it until the model is asked. */
export const measureStart: Benchmark = async ({ quick, say }) => {
  const rounds = quick ? 2 : 40
  const figures = []
  for (const binary of BOTH_ENDS) {
    const { version } = binary
    say(`start on ${version}: ${rounds} rounds of four runs`)
    let askedAt: number | undefined
    const answer: Script = ({ kind }) => {
      if (kind === "turn") askedAt ??= performance.now()
      return { text: "Hello." }
    }
    const untilAsked: Record<Subject, number[]> = { withoutPlain: [], withPlain: [], withoutTask: [], withTask: [] }
    const timed =
      (name: Subject, { run }: BenchProject, message: string) =>
      async (): Promise<number> => {
        askedAt = undefined
        const startedAt = performance.now()
        const { durationMs } = await run(message)
        untilAsked[name].push((askedAt ?? Number.NaN) - startedAt)
        return durationMs
      }
    const values = await withBenchProject(binary, answer, { bundle: "none" }, (without) =>
      withBenchProject(binary, answer, { bundle: "project" }, async (withBundle) => {
        for (const { run } of [without, withBundle]) await run(MESSAGES.task)
        return interleave(
          {
            withoutPlain: timed("withoutPlain", without, MESSAGES.plain),
            withPlain: timed("withPlain", withBundle, MESSAGES.plain),
            withoutTask: timed("withoutTask", without, MESSAGES.task),
            withTask: timed("withTask", withBundle, MESSAGES.task),
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
    const pairs = (of: Record<Subject, number[]>, kind: "Plain" | "Task"): number[] =>
      pairRatios(of[`without${kind}`], of[`with${kind}`])
    figures.push(
      toFigure({ id: "start.without", what: "`opencode run`, without the bundle", ...time }, values.withoutPlain),
      toFigure({ id: "start.with", what: "`opencode run`, with the bundle", ...time }, values.withPlain),
      toFigure({ id: "start.ratio", what: "with ÷ without, no task", ...ratio }, pairs(values, "Plain")),
      toFigure(
        { id: "start.task-ratio", what: "with ÷ without, message with a `Task:` line", ...ratio },
        pairs(values, "Task"),
      ),
      toFigure(
        { id: "start.asked-ratio", what: "until the model is asked, no task", ...ratio },
        pairs(untilAsked, "Plain"),
      ),
      toFigure(
        { id: "start.asked-task-ratio", what: "until the model is asked, `Task:` line", ...ratio },
        pairs(untilAsked, "Task"),
      ),
    )
  }
  return { figures }
}
