import { BOTH_ENDS, NEWEST, type OpenCodeBinary } from "../../test/support/opencode-binary.ts"
import { runOpenCode } from "../../test/support/opencode-run.ts"
import { COMPACTING_PROMPT_TOKENS, measureRetention, retentionScript } from "../../test/support/retention.ts"
import type { ModelRequest, Script } from "../../test/support/scripted-model.ts"
import { openTestLedger } from "../../test/support/test-ledger.ts"
import { withBenchProject } from "./bench-project.ts"
import type { Benchmark } from "./benchmark.ts"
import { inPool } from "./pool.ts"
import type { BeginningRow, RetentionRow } from "./results.ts"

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

const BRIEF = "Never touch the lexer; the release is frozen until Friday."
const NEXT = "Write the CRLF test first."
const CHECKPOINT = "Checkpoint: the parser is read"
/** What an agent has to know to begin, and what one has to know besides to go on where another was killed. */
const TO_BEGIN = [TASK.title, TASK.specification, TASK.definitionOfDone, BRIEF]
const TO_GO_ON = [...TO_BEGIN, NEXT, CHECKPOINT]

const countTold = (request: ModelRequest | undefined, parts: readonly string[]) => ({
  told: parts.filter((part) => request?.conversation.includes(part)).length,
  parts: parts.length,
})

/** A session with a bare `Task:` line, compacted once and killed in its next turn; then a new one with the line alone. */
const runBeginnings = async (binary: OpenCodeBinary, bundle: BeginningRow["bundle"]): Promise<BeginningRow[]> => {
  let kill = (): void => {}
  let turns = 0
  const command = (taskID: string) => `prog log ${taskID} '${CHECKPOINT}' || true`
  const script: Script = ({ kind, conversation }) => {
    if (kind === "compaction") return { text: `## Done\n- The parser was read.\n\n## Next\n- ${NEXT}` }
    turns++
    if (turns === 2) kill()
    if (turns > 1) return { text: "Noted." }
    const taskID = /Task: (ts-[0-9a-f]{6})/.exec(conversation)?.[1] ?? ""
    const input = { command: command(taskID), description: "Log it" }
    return { tool: "bash", input, promptTokens: COMPACTING_PROMPT_TOKENS }
  }
  const options = { bundle: bundle === "baton" ? "project" : "none" } as const
  return withBenchProject(binary, script, options, async ({ project, model, run }) => {
    const taskID = await openTestLedger(project, binary).addTask(TASK)
    const onStart = (pid: number) => {
      kill = () => process.kill(pid, "SIGKILL")
    }
    const killed = await runOpenCode(`Task: ${taskID}\n${BRIEF}\n`, { binary, project, onStart })
    if (killed.signal !== "SIGKILL") throw new Error(`the first run was not killed: it exited ${killed.exitCode}`)
    const before = model.received("turn").length
    await run(`Task: ${taskID}\n`)
    const requests = model.received("turn")
    const about = { version: binary.version, bundle }
    return [
      { ...about, request: "first request", ...countTold(requests[0], TO_BEGIN) },
      { ...about, request: "new session after kill -9", ...countTold(requests[before], TO_GO_ON) },
    ]
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
  const beginnings: BeginningRow[] = []
  for (const binary of quick ? [NEWEST] : BOTH_ENDS)
    for (const bundle of ["plain", "baton"] as const) beginnings.push(...(await runBeginnings(binary, bundle)))
  for (const { version, bundle, request, told, parts } of beginnings)
    say(`  ${version} ${bundle}, ${request}: told ${told} of ${parts}`)
  return { figures: [], retention: rows, beginnings }
}
