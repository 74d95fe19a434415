import { join } from "node:path"
import { BOTH_ENDS } from "../../test/support/opencode-binary.ts"
import { runProgram } from "../../test/support/opencode-run.ts"
import { openTestLedger } from "../../test/support/test-ledger.ts"
import { withBenchProject } from "./bench-project.ts"
import type { Benchmark } from "./benchmark.ts"
import { interleave } from "./interleave.ts"
import { toFigure } from "./results.ts"
import { pairRatios } from "./statistics.ts"

const LEDGER_RATIO = 3
const EMPTY = join(import.meta.dirname, "inside", "empty.ts")
const MESSAGE = "Checkpoint: the parser reads CRLF; next: the tests on Windows line ends."

/** `prog log` of the embedded ledger from start to exit, against an empty script on the same runtime. */
export const measureLedger: Benchmark = async ({ quick, say }) => {
  const rounds = quick ? 2 : 60
  const figures = []
  for (const binary of BOTH_ENDS) {
    const { version } = binary
    say(`ledger on ${version}: ${rounds} rounds of an empty script, prog log and its launcher`)
    const values = await withBenchProject(
      binary,
      () => ({ text: "" }),
      {},
      async ({ project }) => {
        const ledger = openTestLedger(project, binary)
        const id = await ledger.addTask({ title: "Bench", specification: "Measure.", definitionOfDone: "Measured." })
        const baton = join(project.directory, ".opencode", "baton")
        const runtime = [binary.path, "--no-env-file", "--config=/dev/null", "run"] as const
        const time = async (argv: readonly [string, ...string[]]): Promise<number> => {
          const environment = { BUN_BE_BUN: "1", BATON_RUNTIME: binary.path }
          const { exitCode, stderr, durationMs } = await runProgram(argv, { project, environment })
          if (exitCode !== 0) throw new Error(`${argv.join(" ")} exited with ${exitCode}: ${stderr}`)
          return durationMs
        }
        const measured = await interleave(
          {
            empty: () => time([...runtime, EMPTY]),
            direct: () => time([...runtime, join(baton, "ledger", "embedded", "main.ts"), "log", "--", id, MESSAGE]),
            launcher: () => time([join(baton, "bin", "prog"), "log", id, MESSAGE]),
          },
          rounds,
        )
        const { logs } = await ledger.show(id)
        if (logs.length !== rounds * 2) throw new Error(`expected ${rounds * 2} log entries, found ${logs.length}`)
        return measured
      },
    )
    const time = { version, unit: "ms" } as const
    const ratio = { version, unit: "×", below: LEDGER_RATIO } as const
    figures.push(
      toFigure({ id: "ledger.empty", what: "an empty script", ...time }, values.empty),
      toFigure({ id: "ledger.direct", what: "`prog log` without the launcher", ...time }, values.direct),
      toFigure({ id: "ledger.launcher", what: "`prog log` as the agent runs it", ...time }, values.launcher),
      toFigure(
        { id: "ledger.direct-ratio", what: "without the launcher ÷ empty script", ...ratio },
        pairRatios(values.empty, values.direct),
      ),
      toFigure(
        { id: "ledger.launcher-ratio", what: "as the agent runs it ÷ empty script", ...ratio },
        pairRatios(values.empty, values.launcher),
      ),
    )
  }
  return { figures }
}
