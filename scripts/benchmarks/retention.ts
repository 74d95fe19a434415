import { BOTH_ENDS, NEWEST, type OpenCodeBinary } from "../../test/support/opencode-binary.ts"
import { measureRetention, retentionScript } from "../../test/support/retention.ts"
import { openTestLedger } from "../../test/support/test-ledger.ts"
import { withBenchProject } from "./bench-project.ts"
import type { Benchmark } from "./benchmark.ts"
import { inPool } from "./pool.ts"
import type { RetentionRow } from "./results.ts"

const COMPACTIONS = [1, 5, 20, 50]
/** Nothing is timed here, so the machine's cores may share the runs. */
const AT_ONCE = 2
const RUN_DEADLINE_MS = 600_000

const TASK = {
  title: "Teach the parser CRLF",
  specification: "Lines may end in CRLF.\nKeep LF as it is.",
  definitionOfDone: "bun test passes on Windows line ends",
}

type Case = Pick<RetentionRow, "bundle" | "summariser" | "compactions"> & { binary: OpenCodeBinary }

const runCase = ({ binary, bundle, summariser, compactions }: Case): Promise<RetentionRow> => {
  const options = { bundle: bundle === "baton" ? "project" : "none" } as const
  return withBenchProject(binary, retentionScript(compactions, summariser), options, async (opened) => {
    const { project, model } = opened
    const taskID = bundle === "baton" ? await openTestLedger(project, binary).addTask(TASK) : "ts-b54507"
    const message = `# Worker\n\nTask: ${taskID}\n\nNever touch the lexer; the release is frozen until Friday.\n`
    const { exitCode } = await opened.run(message, { deadlineMs: RUN_DEADLINE_MS })
    const seen = measureRetention(model.requests, taskID)
    return {
      version: binary.version,
      bundle,
      summariser,
      compactions,
      compacted: seen.compactions,
      factsKept: seen.factsKept,
      facts: compactions,
      turnsKnowingTask: seen.turnsKnowingTask,
      turns: model.received("turn").length - 1,
      exitCode,
    }
  })
}

/** What is left after many compactions, for plain OpenCode and with Baton. */
export const measureRetentionTable: Benchmark = async ({ quick, say }) => {
  const cases: Case[] = (quick ? [NEWEST] : BOTH_ENDS).flatMap((binary) =>
    (["faithful", "careless"] as const).flatMap((summariser) =>
      (quick ? [1] : COMPACTIONS).flatMap((compactions) =>
        (["plain", "baton"] as const).map((bundle) => ({ binary, bundle, summariser, compactions })),
      ),
    ),
  )
  say(`retention: ${cases.length} runs of up to ${quick ? 1 : Math.max(...COMPACTIONS)} compactions`)
  const rows = await inPool(cases, AT_ONCE, async (each) => {
    const row = await runCase(each)
    say(
      `  ${row.version} ${row.bundle} ${row.summariser}, ${row.compactions} compactions: ` +
        `${row.factsKept}/${row.facts} facts, task known in ${row.turnsKnowingTask}/${row.turns} turns`,
    )
    return row
  })
  return { figures: [], retention: rows }
}
