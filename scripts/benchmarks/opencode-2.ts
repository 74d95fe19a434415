import { TASK } from "../../test/support/ledger/test-ledger.ts"
import {
  inForm,
  measureRetention2,
  retentionScript2,
  SUMMARISERS_2,
  type Summariser2,
} from "../../test/support/model/retention-2.ts"
import type { Script } from "../../test/support/model/scripted-model.ts"
import { BRIEF, type ModelProject, openModelProject, workerMessage } from "../../test/support/opencode/model-project.ts"
import { type RunOptions, runProgram } from "../../test/support/opencode/opencode-run.ts"
import { CONTEXT_TOKENS, FULL_TOKENS } from "../../test/support/opencode/tokens-2.ts"
import { interleave, pairRatios } from "./measure.ts"
import { runInside } from "./project.ts"
import type { Benchmark, Context, Rows } from "./results.ts"

const LIMIT = { context: CONTEXT_TOKENS, output: 4_000 }
const BUNDLES = { plain: "none", baton: "project" } as const
const RUN_DEADLINE_MS = 900_000
const COMPACTIONS = 50

type Opened = Pick<ModelProject, "binary" | "project">

/** `opencode run` in a process of its own, as for OpenCode 2; without `--standalone` a service would stay behind. */
const run = (
  { binary, project }: Opened,
  message: string,
  { args = [], ...rest }: Omit<RunOptions, "binary" | "project" | "launcher"> = {},
) => runProgram([binary.path, "run", "--standalone", "--auto", ...args], { project, ...rest, stdin: message })

/** @throws when the exit code is not 0 */
const runWell = async (opened: Opened, message: string): Promise<number> => {
  const { exitCode, durationMs, stderr } = await run(opened, message)
  if (exitCode === 0) return durationMs
  throw new Error(`opencode ${opened.binary.version} run exited with ${exitCode}: ${stderr.slice(-500)}`)
}

/** One run of as many compactions, and one more message to its session. */
const live = async (
  { binary }: Context,
  bundle: keyof typeof BUNDLES,
  summariser: Summariser2,
  compactions: number,
): Promise<Rows["survival"]> => {
  const script = retentionScript2(compactions, summariser)
  await using opened = await openModelProject(binary, script, { bundle: BUNDLES[bundle], ...LIMIT })
  const taskID = bundle === "baton" ? await opened.addTask() : "ts-b54507"
  const deadlineMs = RUN_DEADLINE_MS
  await run(opened, workerMessage(taskID), { deadlineMs })
  const seen = measureRetention2(opened.model.requests, taskID)
  const turns = opened.model.received("turn").length
  const { exitCode } = await run(opened, "go on", { args: ["-c"], deadlineMs })
  const isAnswered = exitCode === 0 && opened.model.received("turn").length > turns
  return { version: binary.version, bundle, summariser, compactions, ...seen, isAnswered }
}

/** Measures how long a session lives, and what it still holds, with each kind of summary; for plain OpenCode 2 and with Baton. */
export const measureSurvival: Benchmark = async (context) => {
  const compactions = context.quick ? 2 : COMPACTIONS
  for (const summariser of SUMMARISERS_2)
    for (const bundle of ["plain", "baton"] as const)
      context.row("survival", await live(context, bundle, summariser, compactions))
}

const NEXT = "Write the CRLF test first."
const CHECKPOINT = "Checkpoint: the parser is read"
const TO_BEGIN = [TASK.title, TASK.specification, TASK.definitionOfDone, BRIEF]
const TO_GO_ON = [...TO_BEGIN, NEXT, CHECKPOINT]

/** Measures the part of the task in a session's first request, and in that of a new one after `kill -9`, as on OpenCode 1. */
export const measureBeginnings2: Benchmark = async ({ binary, row }) => {
  for (const bundle of ["plain", "baton"] as const) {
    let [turns, started] = [0, 0]
    const script: Script = (request) => {
      if (request.kind === "compaction") return { text: inForm(request, `- The parser was read.\n- ${NEXT}`) }
      turns++
      if (turns === 2) process.kill(started, "SIGKILL")
      if (turns > 1) return { text: "Noted." }
      const taskID = /Task: (ts-[0-9a-f]{6})/.exec(request.conversation)?.[1] ?? ""
      const input = { command: `prog log ${taskID} '${CHECKPOINT}' || true`, description: "Log it" }
      return { tool: "shell", input, promptTokens: FULL_TOKENS }
    }
    await using opened = await openModelProject(binary, script, { bundle: BUNDLES[bundle], ...LIMIT })
    const taskID = await opened.addTask()
    const onStart = (pid: number) => {
      started = pid
    }
    const killed = await run(opened, `Task: ${taskID}\n${BRIEF}\n`, { onStart })
    if (killed.signal !== "SIGKILL") throw new Error(`the first run was not killed: it exited ${killed.exitCode}`)
    const before = opened.model.received("turn").length
    await runWell(opened, `Task: ${taskID}\n`)
    const tell = (request: Rows["beginnings"]["request"], index: number, parts: readonly string[]): void => {
      const asked = opened.model.received("turn")[index]
      const told = parts.filter((part) => asked?.conversation.includes(part)).length
      row("beginnings", { version: binary.version, bundle, request, told, parts: parts.length })
    }
    tell("first request", 0, TO_BEGIN)
    tell("new session after kill -9", before, TO_GO_ON)
  }
}

const HELLO = "Say hello."

/** Measures `opencode run --standalone` with one turn, with and without the bundle, and its part before the model is asked. */
export const measureStart2: Benchmark = async ({ binary, quick, figure }) => {
  const rounds = quick ? 2 : 40
  let askedAt: number | undefined
  const answer: Script = ({ kind }) => {
    if (kind === "turn") askedAt ??= performance.now()
    return { text: "Hello." }
  }
  await using without = await openModelProject(binary, answer, { bundle: "none", ...LIMIT })
  await using withBundle = await openModelProject(binary, answer, LIMIT)
  const task = workerMessage(await withBundle.addTask(), HELLO)
  const asked: Record<string, number[]> = {}
  const timed = (name: string, opened: Opened, message: string) => async (): Promise<number> => {
    askedAt = undefined
    const startedAt = performance.now()
    const durationMs = await runWell(opened, message)
    asked[name] = [...(asked[name] ?? []), (askedAt ?? Number.NaN) - startedAt]
    return durationMs
  }
  for (const opened of [without, withBundle]) await runWell(opened, task)
  const whole = await interleave(
    {
      without: timed("without", without, HELLO),
      with: timed("with", withBundle, HELLO),
      withoutTask: timed("withoutTask", without, task),
      withTask: timed("withTask", withBundle, task),
    },
    rounds,
  )
  const ratio = (id: string, what: string, base: number[] = [], other: number[] = []): void =>
    figure(`start2.${id}`, what, "×", pairRatios(base, other))
  ratio("ratio", "with ÷ without, no task", whole.without, whole.with)
  ratio("task-ratio", "with ÷ without, message with a `Task:` line", whole.withoutTask, whole.withTask)
  ratio("asked-ratio", "until the model is asked, no task", asked.without, asked.with)
  ratio("asked-task-ratio", "until the model is asked, `Task:` line", asked.withoutTask, asked.withTask)
}

const SIZES = [100, 1_000, 10_000]

/** Measures, in OpenCode 2's runtime, the hook of a request by the messages of its session, and an event that is not needed. */
export const measureHook2: Benchmark = async ({ binary, quick, figure }) => {
  const [rounds, events] = quick ? [3, 2_000] : [40, 100_000]
  await using opened = await openModelProject(binary, undefined, LIMIT)
  const taskID = await opened.addTask()
  const { directory, home } = opened.project
  const printed = await runInside(binary, "opencode-2-cost.ts", directory, home, taskID, rounds, events, ...SIZES)
  for (const size of SIZES)
    figure(
      `hook2.${size}`,
      `the hook of a request, ${size.toLocaleString("en")} messages`,
      "ms",
      printed(`hook${size}`),
    )
  figure("hook2.ratio", "10,000 ÷ 100 messages", "×", pairRatios(printed("hook100"), printed("hook10000")))
  figure("event2.delta", `a token delta (mean of ${events.toLocaleString("en")} a round)`, "µs", printed("delta"))
  figure("event2.nothing", "the same events with nothing that hears them", "µs", printed("nothing"))
}
