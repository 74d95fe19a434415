import { join } from "node:path"
import { LEARNING_SETS, scoreLearningSet } from "../../test/support/learning-sets.ts"
import { BOTH_ENDS } from "../../test/support/opencode-binary.ts"
import type { Benchmark } from "./benchmark.ts"
import { type Figure, toFigure } from "./results.ts"
import { numbersIn, runAsBun } from "./run-as-bun.ts"

const LOOKUP_MS = 20
const LEARNINGS = 10_000
const SCRIPT = join(import.meta.dirname, "inside", "learning-lookup.ts")

/** What the detector makes of the labelled messages, and what looking up and looking at a message cost in OpenCode's runtime. */
export const measureLearning: Benchmark = async ({ quick, say }) => {
  const rounds = quick ? 3 : 30
  const figures: Figure[] = []
  for (const binary of BOTH_ENDS) {
    const { version } = binary
    say(`learning on ${version}: ${rounds} look-ups among ${LEARNINGS} learnings`)
    const document = await runAsBun(binary, SCRIPT, [String(LEARNINGS), String(rounds)])
    const about = { version, unit: "ms" } as const
    figures.push(
      toFigure(
        { id: "learning.lookup", what: "a look-up among 10,000 learnings", below: LOOKUP_MS, ...about },
        numbersIn(document, "lookup"),
      ),
      toFigure(
        { id: "learning.copy", what: "reading the copy of 10,000 learnings", ...about },
        numbersIn(document, "parse"),
      ),
      toFigure({ id: "learning.look", what: "the look at one message", ...about }, numbersIn(document, "look")),
    )
  }
  const detection = LEARNING_SETS.map((name) => {
    const { messages, labels, stored, precision, recall, rightType } = scoreLearningSet(name)
    return { set: name, messages, labels, stored, precision, recall, rightType }
  })
  return { figures, detection }
}
