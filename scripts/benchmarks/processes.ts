import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { AUDIT_FOLDER, type AuditEntry, auditEntry } from "../../.opencode/baton/pass-over/audit/log.ts"
import { POLICY_FILE } from "../../.opencode/baton/pass-over/policy/policy-path.ts"
import { createPassID } from "../../.opencode/baton/pass-over/store/record.ts"
import type { Script } from "../../test/support/model/scripted-model.ts"
import { type ModelProject, openModelProject, workerMessage } from "../../test/support/opencode/model-project.ts"
import { REPOSITORY } from "../../test/support/opencode/opencode-binary.ts"
import { type RunResult, runProgram } from "../../test/support/opencode/opencode-run.ts"
import { passMetadata, passRecord, passRequest } from "../../test/support/opencode/pass-over-values.ts"
import { carryZod } from "../../test/support/opencode/test-project.ts"
import { interleave, pairRatios } from "./measure.ts"
import { INSIDE, runInside, useProbe } from "./project.ts"
import type { Benchmark } from "./results.ts"

const LOAD_MS = 10
const START_RATIO = 1.06
/** Higher, since the first request of a session with a task holds the task, read from the ledger. */
const TASK_START_RATIO = 1.1
const HELLO = "Say hello."

/** Measures import and init of the whole bundle: in a fresh process of OpenCode's runtime, and inside a real `opencode run`. */
export const measureLoad: Benchmark = async ({ binary, quick, figure }) => {
  // On 1.18 an import inside a run takes 7 ms or 40, depending on OpenCode's own start: a median needs many rounds.
  const rounds = quick ? 2 : 40
  await using opened = await openModelProject(binary)
  const { plugins, environment, notes } = useProbe(opened)
  const fresh: Record<"load" | "message" | "zod", number[]> = { load: [], message: [], zod: [] }
  await opened.runWell(HELLO, { environment })
  for (let round = 0; round < rounds; round++) {
    const printed = await runInside(binary, "bundle-cost.ts", plugins, opened.project.directory)
    for (const [name, values] of Object.entries(fresh)) values.push(...printed(name))
    await opened.runWell(HELLO, { environment })
  }
  const inRun = notes("load").map(({ ms }) => ms)
  figure("load.fresh", "import and init, in a fresh process", "ms", fresh.load, LOAD_MS)
  figure("load.run", "import and init, inside `opencode run`", "ms", inRun.slice(1), LOAD_MS)
  figure("load.feature", "the first message of a resumed session, which loads the rest", "ms", fresh.message)
  figure("load.zod", "zod, loaded when stored data is first read", "ms", fresh.zod)
}

/**
 * `bare`: in a project that has no `.opencode` at all, for which OpenCode has less to do; `cloneTask`: zod is not beside the bundle,
 * but among the packages that OpenCode 1 installs for plugins.
 */
type Way = "bare" | "without" | "with" | "withoutTask" | "withTask" | "cloneTask"

/** Measures an `opencode run` with one turn, with and without the bundle, and its part before the model request. */
export const measureStart: Benchmark = async ({ binary, quick, figure }) => {
  // In 40 rounds two projects that are the same differ by up to 2 %.
  const rounds = quick ? 2 : 40
  let askedAt: number | undefined
  const answer: Script = ({ kind }) => {
    if (kind === "turn") askedAt ??= performance.now()
    return { text: "Hello." }
  }
  const asked: Record<Way, number[]> = {
    bare: [],
    without: [],
    with: [],
    withoutTask: [],
    withTask: [],
    cloneTask: [],
  }
  const timed = async (name: Way, { runWell }: ModelProject, message: string): Promise<number> => {
    askedAt = undefined
    const startedAt = performance.now()
    const { durationMs } = await runWell(message)
    asked[name].push((askedAt ?? Number.NaN) - startedAt)
    return durationMs
  }
  await using bare = await openModelProject(binary, answer, { bundle: "none" })
  rmSync(join(bare.project.directory, ".opencode"), { recursive: true })
  await using without = await openModelProject(binary, answer, { bundle: "none" })
  await using withBundle = await openModelProject(binary, answer)
  await using clone = await openModelProject(binary, answer)
  // As `init` leaves a project.
  for (const { project } of [withBundle, clone])
    project.write(POLICY_FILE, readFileSync(join(REPOSITORY, POLICY_FILE), "utf8"))
  carryZod(withBundle.project.directory)
  const taskHello = workerMessage(await withBundle.addTask(), HELLO)
  const cloneTaskHello = workerMessage(await clone.addTask(), HELLO)
  for (const { runWell } of [bare, without, withBundle, clone]) await runWell(taskHello)
  const subjects = {
    bare: () => timed("bare", bare, HELLO),
    without: () => timed("without", without, HELLO),
    with: () => timed("with", withBundle, HELLO),
    withoutTask: () => timed("withoutTask", without, taskHello),
    withTask: () => timed("withTask", withBundle, taskHello),
    cloneTask: () => timed("cloneTask", clone, cloneTaskHello),
  }
  const whole = await interleave(subjects, rounds)
  const ratios = (id: string, what: string, withLine: string, times: Record<Way, number[]>): void => {
    const [noTask, task] = [pairRatios(times.without, times.with), pairRatios(times.withoutTask, times.withTask)]
    figure(`start.${id}ratio`, `${what}, no task`, "×", noTask, START_RATIO)
    figure(`start.${id}task-ratio`, `${what}, ${withLine}`, "×", task, TASK_START_RATIO)
  }
  figure("start.without", "`opencode run`, without the bundle", "ms", whole.without)
  figure("start.with", "`opencode run`, with the bundle", "ms", whole.with)
  ratios("", "with ÷ without", "message with a `Task:` line", whole)
  ratios("asked-", "until the model is asked", "`Task:` line", asked)
  const zod = "until the model is asked, `Task:` line, zod beside the bundle ÷ among OpenCode's packages"
  figure("start.zod-ratio", zod, "×", pairRatios(asked.cloneTask, asked.withTask))
  const folder = pairRatios(asked.bare, asked.without)
  figure("start.folder-ratio", "the same without the bundle, a project with `.opencode` ÷ one without", "×", folder)
}

type Argv = readonly [string, ...string[]]

/** @throws when it does not end with 0 */
const runWell = async ({ binary, project }: ModelProject, argv: Argv): Promise<RunResult> => {
  const environment = { BATON_RUNTIME: binary.path, BATON_OPENCODE: binary.path, BUN_BE_BUN: "1" }
  const result = await runProgram(argv, { project, environment })
  if (result.exitCode === 0) return result
  throw new Error(`${argv.join(" ")} exited with ${result.exitCode}: ${result.stderr.slice(-500)}`)
}

const LEDGER_RATIO = 3
const MESSAGE = "Checkpoint: the parser reads CRLF; next: the tests on Windows line ends."

/** Measures `prog log` of the embedded ledger from start to exit, against an empty script on the same runtime. */
export const measureLedger: Benchmark = async ({ binary, quick, figure }) => {
  const rounds = quick ? 2 : 60
  await using opened = await openModelProject(binary)
  const id = await opened.addTask()
  const baton = join(opened.project.directory, ".opencode", "baton")
  const runtime = [binary.path, "--no-env-file", "--config=/dev/null", "run"] as const
  const time = (argv: Argv) => async () => (await runWell(opened, argv)).durationMs
  const subjects = {
    empty: time([...runtime, join(INSIDE, "empty.ts")]),
    direct: time([...runtime, join(baton, "ledger", "embedded", "main.ts"), "log", "--", id, MESSAGE]),
    launcher: time([join(baton, "bin", "prog"), "log", id, MESSAGE]),
  }
  const { empty, direct, launcher } = await interleave(subjects, rounds)
  const { logs } = await opened.ledger.show(id)
  if (logs.length !== rounds * 2) throw new Error(`expected ${rounds * 2} log entries, found ${logs.length}`)
  const ratio = (id: string, what: string, values: number[]): void =>
    figure(`ledger.${id}-ratio`, `${what} ÷ empty script`, "×", pairRatios(empty, values), LEDGER_RATIO)
  figure("ledger.empty", "an empty script", "ms", empty)
  figure("ledger.direct", "`prog log` without the launcher", "ms", direct)
  figure("ledger.launcher", "`prog log` as the agent runs it", "ms", launcher)
  ratio("direct", "without the launcher", direct)
  ratio("launcher", "as the agent runs it", launcher)
}

const QUERY_MS = 1000
const SESSIONS = 100
const PASSES_OF_SESSION = 250
const CHANGES = ["sent", "started", "returned", "applied"] as const
const AGENTS = ["audit", "scout", "inspector", "validator", "skill/review"]

/** The four changes of one pass, in the order in which they happen. */
const entriesOf = (session: number, pass: number, month: string): AuditEntry[] => {
  const at = new Date(Date.parse(`${month}-01T00:00:00.000Z`) + pass * 60_000)
  const created = at.toISOString()
  const record = passRecord({
    request: passRequest({
      pass_over_id: createPassID(at, `s${String(session).padStart(5, "0")}`),
      subagent_id: AGENTS[pass % AGENTS.length] ?? "",
      reason: `Review the change ${pass} of session ${session}`,
      metadata: passMetadata({ root_session_id: `ses_${session}`, created_at: created }),
    }),
  })
  return CHANGES.map((event) => auditEntry(record, { at: created, event }))
}

/** Writes an audit of 100,000 lines: 100 sessions in four months, 250 passes each. */
const writeAudit = (projectRoot: string): void => {
  for (let session = 0; session < SESSIONS; session++) {
    const month = `2026-0${(session % 4) + 1}`
    const folder = join(projectRoot, AUDIT_FOLDER, month)
    const entries = Array.from({ length: PASSES_OF_SESSION }, (_, pass) => entriesOf(session, pass, month)).flat()
    const lines = entries.map((entry) => `${JSON.stringify(entry)}\n`).join("")
    mkdirSync(folder, { recursive: true })
    writeFileSync(join(folder, `session-ses_${session}-passes.jsonl`), lines)
  }
}

const QUERIES = [
  { id: "all", what: "`baton passes`, all of 25,000", args: [], passes: SESSIONS * PASSES_OF_SESSION },
  { id: "agent", what: "`baton passes --agent`, one of five", args: ["--agent", "scout"], passes: 5000 },
  { id: "session", what: "`baton passes --session`, one of 100", args: ["--session", "ses_7"], passes: 250 },
]

/** Measures a user's query over 100,000 audit lines, from the launcher's start to its end. */
export const measureAudit: Benchmark = async ({ binary, quick, figure }) => {
  const rounds = quick ? 2 : 20
  await using opened = await openModelProject(binary)
  writeAudit(opened.project.directory)
  const baton = join(opened.project.directory, ".opencode", "baton", "bin", "baton")
  const query = async ({ args, passes }: (typeof QUERIES)[number]): Promise<number> => {
    const { stdout, durationMs } = await runWell(opened, [baton, "passes", ...args])
    const lines = stdout.split("\n").length - 1
    if (lines === passes) return durationMs
    throw new Error(`expected ${passes} passes, received ${lines}`)
  }
  const values = await interleave(Object.fromEntries(QUERIES.map((each) => [each.id, () => query(each)])), rounds)
  for (const { id, what } of QUERIES) figure(`audit.${id}`, what, "ms", values[id] ?? [], QUERY_MS)
}
