import { TASK } from "../../test/support/ledger/test-ledger.ts"
import {
  FEATURE_NAMES,
  type FeatureName,
  REQUEST_NAMES,
  recordRequests,
} from "../../test/support/model/request-scenario.ts"
import { COMPACTING_PROMPT_TOKENS, measureRetention, retentionScript } from "../../test/support/model/retention.ts"
import type { ModelRequest, Script } from "../../test/support/model/scripted-model.ts"
import { BRIEF, openModelProject, workerMessage } from "../../test/support/opencode/model-project.ts"
import { useProbe } from "./project.ts"
import type { Benchmark, Context, Rows } from "./results.ts"

const COMPACTIONS = [1, 5, 20, 50]
const RUN_DEADLINE_MS = 600_000
const BUNDLES = { plain: "none", baton: "project" } as const
const BUNDLE_NAMES = ["plain", "baton"] as const

type Case = Pick<Rows["retention"], "bundle" | "summariser" | "compactions">

const runCase = async ({ binary }: Context, { bundle, summariser, compactions }: Case): Promise<Rows["retention"]> => {
  const options = { bundle: BUNDLES[bundle] }
  await using opened = await openModelProject(binary, retentionScript(compactions, summariser), options)
  const { model } = opened
  const taskID = bundle === "baton" ? await opened.addTask() : "ts-b54507"
  const { exitCode } = await opened.runWell(workerMessage(taskID), { deadlineMs: RUN_DEADLINE_MS })
  const { compactions: compacted, factsKept, turnsKnowingTask } = measureRetention(model.requests, taskID)
  const seen = { compacted, factsKept, facts: compactions, turnsKnowingTask }
  const turns = model.received("turn").length - 1
  return { version: binary.version, bundle, summariser, compactions, ...seen, turns, exitCode }
}

const NEXT = "Write the CRLF test first."
const CHECKPOINT = "Checkpoint: the parser is read"
/** Facts that an agent needs to begin, and those it needs to continue the work of a killed one. */
const TO_BEGIN = [TASK.title, TASK.specification, TASK.definitionOfDone, BRIEF]
const TO_GO_ON = [...TO_BEGIN, NEXT, CHECKPOINT]

/**
 * Runs a session with a bare `Task:` line, compacted once and killed in its next turn; then a new session with that line alone.
 */
const runBeginnings = async ({ binary, row }: Context, bundle: Case["bundle"]): Promise<void> => {
  let [turns, started] = [0, 0]
  const script: Script = ({ kind, conversation }) => {
    if (kind === "compaction") return { text: `## Done\n- The parser was read.\n\n## Next\n- ${NEXT}` }
    turns++
    if (turns === 2) process.kill(started, "SIGKILL")
    if (turns > 1) return { text: "Noted." }
    const taskID = /Task: (ts-[0-9a-f]{6})/.exec(conversation)?.[1] ?? ""
    const input = { command: `prog log ${taskID} '${CHECKPOINT}' || true`, description: "Log it" }
    return { tool: "bash", input, promptTokens: COMPACTING_PROMPT_TOKENS }
  }
  await using opened = await openModelProject(binary, script, { bundle: BUNDLES[bundle] })
  const { model, run, runWell } = opened
  const taskID = await opened.addTask()
  const onStart = (pid: number) => {
    started = pid
  }
  const killed = await run(`Task: ${taskID}\n${BRIEF}\n`, { onStart })
  if (killed.signal !== "SIGKILL") throw new Error(`the first run was not killed: it exited ${killed.exitCode}`)
  const before = model.received("turn").length
  await runWell(`Task: ${taskID}\n`)
  const tell = (request: Rows["beginnings"]["request"], index: number, parts: readonly string[]): void => {
    const asked = model.received("turn")[index]
    const told = parts.filter((part) => asked?.conversation.includes(part)).length
    row("beginnings", { version: binary.version, bundle, request, told, parts: parts.length })
  }
  tell("first request", 0, TO_BEGIN)
  tell("new session after kill -9", before, TO_GO_ON)
}

/** Measures the part of the task in a session's first request, for plain OpenCode and with Baton. */
export const measureBeginnings: Benchmark = async (context) => {
  for (const bundle of BUNDLE_NAMES) await runBeginnings(context, bundle)
}

/** Measures the facts left after many compactions, for plain OpenCode and with Baton. */
export const measureRetentionTable: Benchmark = async (context) => {
  for (const summariser of ["faithful", "careless"] as const)
    for (const compactions of context.quick ? [1] : COMPACTIONS) {
      const cases = BUNDLE_NAMES.map((bundle) => runCase(context, { bundle, summariser, compactions }))
      for (const row of await Promise.all(cases)) context.row("retention", row)
    }
}

const SUBJECTS: readonly (readonly [FeatureName | "bundle", readonly FeatureName[]])[] = [
  ["bundle", FEATURE_NAMES],
  ...FEATURE_NAMES.map((name) => [name, [name]] as const),
]

/** Measures the characters that each feature, and all together, add to each kind of request. */
export const measureTokens: Benchmark = async ({ binary, quick, row }) => {
  const plain = await recordRequests(binary, [])
  const recorded: [name: string, requests: typeof plain][] = []
  for (const [name, names] of quick ? SUBJECTS.slice(0, 1) : SUBJECTS)
    recorded.push([name, await recordRequests(binary, names)])
  for (const request of REQUEST_NAMES) {
    const { text, characters } = plain[request]
    const changed = recorded.filter(([, requests]) => requests[request].text !== text)
    const added = Object.fromEntries(changed.map(([name, other]) => [name, other[request].characters - characters]))
    row("additions", { version: binary.version, request, plain: characters, added })
  }
}

const MOST_CHARACTERS = 16_000
/** 10 % of the context, at four characters per token. */
const CHARACTERS_PER_CONTEXT_TOKEN = 0.4

const sentences = (characters: number): string => "Keep what is there; change one thing. ".repeat(characters / 38)

const TASKS = {
  usual: { brief: BRIEF, specification: sentences(400) },
  huge: { brief: sentences(30_000), specification: sentences(40_000) },
}

/** Characters of the note that the bundle adds to a turn's request. */
const noteLength = ({ messages }: ModelRequest): number => {
  const texts = messages.flatMap(({ content }) =>
    Array.isArray(content) ? content.map((each) => each?.text) : content,
  )
  const note = texts.find((text) => typeof text === "string" && text.startsWith("[Baton]"))
  return typeof note === "string" ? note.length : 0
}

/** Measures the characters that the bundle adds to a compaction prompt and to the next turn. */
export const measureAdditions: Benchmark = async ({ binary, quick, figure }) => {
  const compactions = quick ? 1 : 5
  const measure = async (context: number, size: keyof typeof TASKS) => {
    const where = `${context.toLocaleString("en")} tokens of context, ${size} task`
    await using opened = await openModelProject(binary, retentionScript(compactions, "careless", context - 300), {
      context,
    })
    const { environment, notes } = useProbe(opened)
    const { brief, specification } = TASKS[size]
    const taskID = await opened.addTask({ specification })
    await opened.runWell(workerMessage(taskID, brief), { environment })
    const seen = measureRetention(opened.model.requests, taskID).compactions
    if (seen !== compactions) throw new Error(`expected ${compactions} compactions, saw ${seen}`)
    const blocks = notes("compacting").map(({ block }) => block)
    const notesAfter = opened.model.received("turn").slice(1).map(noteLength)
    const limit = Math.min(MOST_CHARACTERS, context * CHARACTERS_PER_CONTEXT_TOKEN) + 1
    figure(`additions.prompt.${context}.${size}`, `compaction prompt, ${where}`, "characters", blocks, limit)
    figure(`additions.turn.${context}.${size}`, `next turn, ${where}`, "characters", notesAfter, limit)
  }
  for (const context of [20_000, 200_000]) for (const size of ["usual", "huge"] as const) await measure(context, size)
}
