import { join } from "node:path"
import { BOTH_ENDS } from "../../test/support/opencode-binary.ts"
import type { Benchmark } from "./benchmark.ts"
import { HOSTILE_TEXTS } from "./inside/hostile-texts.ts"
import { interleave } from "./interleave.ts"
import { type Figure, toFigure } from "./results.ts"
import { numberIn, runAsBun } from "./run-as-bun.ts"

const PARSE_MS = 100
const CHARACTERS = 1_000_000
const PARSE_COST = join(import.meta.dirname, "inside", "parse-cost.ts")

/** What parsing 1 MB of hostile text costs in OpenCode's runtime; each text in a fresh process, where no code is warm. */
export const measureReferences: Benchmark = async ({ quick, say }) => {
  const rounds = quick ? 2 : 20
  const figures: Figure[] = []
  for (const binary of BOTH_ENDS) {
    const { version } = binary
    say(`references on ${version}: ${rounds} rounds of ${HOSTILE_TEXTS.length} texts`)
    const parse = async (shape: string): Promise<number> =>
      numberIn(await runAsBun(binary, PARSE_COST, [shape, String(CHARACTERS)]), "ms")
    const times = await interleave(Object.fromEntries(HOSTILE_TEXTS.map(({ id }) => [id, () => parse(id)])), rounds)
    for (const { id, what } of HOSTILE_TEXTS) {
      const about = { id: `references.${id}`, what, version, unit: "ms", below: PARSE_MS } as const
      figures.push(toFigure(about, times[id] ?? []))
    }
  }
  return { figures }
}
