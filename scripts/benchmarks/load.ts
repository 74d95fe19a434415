import { readFileSync } from "node:fs"
import { join } from "node:path"
import { BOTH_ENDS } from "../../test/support/opencode-binary.ts"
import { usePlugin, withBenchProject } from "./bench-project.ts"
import type { Benchmark } from "./benchmark.ts"
import { toFigure } from "./results.ts"
import { numberIn, runAsBun } from "./run-as-bun.ts"

const LOAD_MS = 10
const LOAD_ONCE = join(import.meta.dirname, "inside", "load-once.ts")

const lastLine = (path: string): unknown => JSON.parse(readFileSync(path, "utf8").trim().split("\n").at(-1) ?? "")

/** Import and init of the whole bundle: in a fresh process of each runtime, and inside a real `opencode run`. */
export const measureLoad: Benchmark = async ({ quick, say }) => {
  // Inside a run on 1.18 an import takes 7 ms or 40, as OpenCode's own start falls: a median of few says little.
  const rounds = quick ? 2 : 40
  const figures = []
  for (const binary of BOTH_ENDS) {
    const { version } = binary
    say(`load on ${version}: ${rounds} fresh processes and ${rounds} runs`)
    const fresh: Record<"ms" | "message" | "zod", number[]> = { ms: [], message: [], zod: [] }
    const inRun: number[] = []
    await withBenchProject(
      binary,
      () => ({ text: "Finished." }),
      {},
      async (opened) => {
        const folder = usePlugin(opened, "timed-load.ts")
        const file = join(opened.project.home, "load.jsonl")
        const environment = { BATON_BENCH_PLUGINS: folder, BATON_BENCH_FILE: file }
        await opened.run("Say hello.", { environment })
        for (let round = 0; round < rounds; round++) {
          const printed = await runAsBun(binary, LOAD_ONCE, [folder, opened.project.directory])
          for (const field of ["ms", "message", "zod"] as const) fresh[field].push(numberIn(printed, field))
          await opened.run("Say hello.", { environment })
          inRun.push(numberIn(lastLine(file), "ms"))
        }
      },
    )
    const promised = { version, unit: "ms", below: LOAD_MS } as const
    const later = { version, unit: "ms" } as const
    figures.push(
      toFigure({ id: "load.fresh", what: "import and init, in a fresh process", ...promised }, fresh.ms),
      toFigure({ id: "load.run", what: "import and init, inside `opencode run`", ...promised }, inRun),
      toFigure(
        { id: "load.feature", what: "the first message of a resumed session, which loads the rest", ...later },
        fresh.message,
      ),
      toFigure({ id: "load.zod", what: "zod, loaded when stored data is first read", ...later }, fresh.zod),
    )
  }
  return { figures }
}
