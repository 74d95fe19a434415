import { readFileSync } from "node:fs"
import { join } from "node:path"
import { BOTH_ENDS } from "../../test/support/opencode-binary.ts"
import { usePlugin, withBenchProject } from "./bench-project.ts"
import type { Benchmark } from "./benchmark.ts"
import { interleave } from "./interleave.ts"
import { toFigure } from "./results.ts"
import { numberIn, runAsBun } from "./run-as-bun.ts"

const LOAD_MS = 10
const LOAD_ONCE = join(import.meta.dirname, "inside", "load-once.ts")

const lastLine = (path: string): unknown => JSON.parse(readFileSync(path, "utf8").trim().split("\n").at(-1) ?? "")

/** Import and init of the whole bundle: in a fresh process of each runtime, and inside a real `opencode run`. */
export const measureLoad: Benchmark = async ({ quick, say }) => {
  const rounds = quick ? 2 : 30
  const figures = []
  for (const binary of BOTH_ENDS) {
    const { version } = binary
    say(`load on ${version}: ${rounds} fresh processes and ${rounds} runs`)
    const values = await withBenchProject(
      binary,
      () => ({ text: "Finished." }),
      {},
      async (opened) => {
        const folder = usePlugin(opened, "timed-load.ts")
        const file = join(opened.project.home, "load.jsonl")
        const environment = { BATON_BENCH_PLUGINS: folder, BATON_BENCH_FILE: file }
        await opened.run("Say hello.", { environment })
        return interleave(
          {
            fresh: async () => numberIn(await runAsBun(binary, LOAD_ONCE, [folder, opened.project.directory]), "ms"),
            run: async () => {
              await opened.run("Say hello.", { environment })
              return numberIn(lastLine(file), "ms")
            },
          },
          rounds,
        )
      },
    )
    const about = { version, unit: "ms", below: LOAD_MS } as const
    figures.push(
      toFigure({ id: "load.fresh", what: "import and init, in a fresh process", ...about }, values.fresh),
      toFigure({ id: "load.run", what: "import and init, inside `opencode run`", ...about }, values.run),
    )
  }
  return { figures }
}
