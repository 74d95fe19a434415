import { readFileSync } from "node:fs"
import { createRequire } from "node:module"
import { constants } from "node:os"
import { join } from "node:path"
import { splitHandoffs } from "../../.opencode/baton/ledger/description.ts"
import { type Script, type ScriptedModel, startScriptedModel } from "../../test/support/model/scripted-model.ts"
import { countCompactions, openCodeVersion, runAgent } from "./agent-run.ts"
import {
  type Evidence,
  firstRequests,
  hasFailed,
  judge,
  type LedgerTask,
  type LeftBehind,
  recordedCompactions,
  untoldIn,
} from "./claims.ts"
import { createPlace, type DemoOptions, type Place, prepareProject } from "./place.ts"
import {
  createPaint,
  createProgress,
  type Paint,
  renderAgentEnd,
  renderClaims,
  renderEnd,
  renderHeader,
  renderKnowledge,
  renderShow,
  renderStanding,
  renderTask,
  renderTimeline,
  wantsColour,
} from "./report.ts"
import { isCrashPoint, SUMMARIES, scriptedAgent } from "./scripted-agent.ts"
import { FROZEN_FILE, PROJECT_FILES, pastedMessage, TASK, testCount, workerMessage } from "./slug-project.ts"
import { findTraces, foldersToSearch } from "./traces.ts"

const write = (text: string): void => {
  process.stdout.write(text)
}
const say = (...lines: string[]): void => write(`${lines.join("\n")}\n`)

/** From the command line, as scripts/demo has checked it; an option that was not given is an empty variable. */
const readOptions = ({ DEMO_MODEL, DEMO_KEEP, DEMO_OPENCODE, DEMO_WITHOUT_BATON }: NodeJS.ProcessEnv): DemoOptions => ({
  opencode: DEMO_OPENCODE || process.execPath,
  model: DEMO_MODEL || undefined,
  keep: DEMO_KEEP || undefined,
  withBaton: !DEMO_WITHOUT_BATON,
})

const runTest = async ({ run }: Place): Promise<Evidence["test"]> => {
  const { exitCode, stdout } = await run("node", "--test")
  const [passed = "?", tests = "?"] = [testCount(stdout, "pass"), testCount(stdout, "tests")]
  return { passes: exitCode === 0, summary: `node --test: ${passed} of ${tests}` }
}

/** @returns whether every asserted claim holds */
const demonstrate = async (
  place: Place,
  model: ScriptedModel | undefined,
  crash: AbortSignal,
  paint: Paint,
): Promise<boolean> => {
  const startedAt = Date.now()
  const { options, directory, root, repository } = place
  let section = 0
  const head = (title: string, remark = ""): void => {
    const text = `${paint("cyan", String(++section))}  ${paint("bold", title)}`
    say("", remark === "" ? text : `${text}  ${paint("dim", remark)}`)
  }
  /** A second-level heading: the command that prints the following lines. */
  const sayCommand = (command: string, remark: string): void =>
    say(`   ${paint("cyan", "$")} ${command}  ${paint("dim", remark)}`)
  /** The ledger as seen from outside: only through the prog command. */
  const prog = async (...args: string[]): Promise<string> =>
    (await place.succeed(join(repository, ".opencode", "baton", "bin", "prog"), ...args)).trimEnd()
  const readTask = async (): Promise<LedgerTask> => JSON.parse(await prog("show", taskID, "--json"))

  say(...renderHeader(options, await openCodeVersion(place), paint))
  const installed = options.withBaton ? "Baton by ./scripts/install" : "no Baton"
  head("A project with a failing test, a task in the ledger", installed)
  await prepareProject(place, model?.url)
  const { title, definitionOfDone, specification: ordered } = TASK
  const taskID = await prog("add", title, "-p", "slugs", "--dod", definitionOfDone, "--desc", ordered)
  say(...renderTask(taskID, options, paint))

  head("opencode run: the agent works, and its context fills up again and again")
  const progress = createProgress(write, paint, (number) => (model && SUMMARIES[number - 1]?.shown) ?? "")
  const runShown = (message: string, killed?: AbortSignal) =>
    runAgent(place, message, progress.show, killed).finally(progress.end)
  let run = await runShown(options.withBaton ? workerMessage(taskID) : pastedMessage(taskID), crash)
  let leftBehind: LeftBehind | undefined
  if (crash.aborted && run.exitCode === null) {
    leftBehind = { sessionID: run.sessionID ?? "", ...(await readTask()) }
    const remark = paint("dim", "in the middle of the work; then, with nothing else:")
    say(`   ${paint("red", "✗ kill -9")}  ${remark} opencode run "Task: ${taskID}"`)
    const next = await runShown(`Task: ${taskID}\n`)
    run = { ...next, seconds: run.seconds + next.seconds }
  }
  say(...renderAgentEnd(run, paint))
  const counted = model?.received("compaction").length
  const compactions = counted ?? (run.sessionID ? await countCompactions(place, run.sessionID) : 0)

  const told = model && firstRequests(model.requests, taskID)
  const afterCrash = leftBehind && told?.findLast(({ after }) => after === "nothing")?.conversation
  if (told) {
    head("What the model is told at the beginning, after each compaction and after the crash")
    const kinds = SUMMARIES.map(({ kind }) => kind)
    say(...renderKnowledge(told, kinds, paint), ...(afterCrash ? renderStanding(afterCrash, paint) : []))
  }

  const task = await readTask()
  const recorded = recordedCompactions(task)
  const { specification } = splitHandoffs(task.description)
  head("What an observer sees")
  sayCommand(`prog show ${taskID} --json`, "its compactions, UTC")
  say(...renderTimeline(recorded, paint))
  sayCommand(`prog show ${taskID}`, "shortened")
  say(...renderShow(await prog("show", taskID), task, specification, paint))

  head("Checked")
  const evidence: Evidence = {
    exitCode: run.exitCode,
    compactions,
    recorded,
    specification: { ordered, inLedger: specification },
    knowledge: told?.map(({ knowledge }) => knowledge),
    untold: leftBehind && afterCrash ? untoldIn(afterCrash, leftBehind) : undefined,
    test: await runTest(place),
    isFrozenFileUntouched: readFileSync(join(directory, FROZEN_FILE), "utf8") === PROJECT_FILES[FROZEN_FILE],
    status: task.status,
    traces: model && findTraces(foldersToSearch(repository, process.env), root, startedAt),
    root,
  }
  const claims = judge(evidence, model !== undefined)
  say(...renderClaims(claims, paint))
  const isOwnSession = !model && !options.keep && run.sessionID
  const deleted = isOwnSession ? await place.openCode(["session", "delete", isOwnSession]) : undefined
  const passed = !hasFailed(claims)
  say("", ...renderEnd({ place, taskID, passed, isForgotten: deleted?.exitCode === 0 }, paint))
  return passed
}

/**
 * Runs the demo and always removes its files; only the folder that the user asked to keep stays, unless the demo is interrupted.
 *
 * @returns whether every asserted claim holds
 * @throws when a part of the demo itself fails, or the signal's reason when it was interrupted
 */
const runDemo = async (options: DemoOptions, signal: AbortSignal): Promise<boolean> => {
  const place = createPlace(options, signal)
  const crash = new AbortController()
  const crashing: Script = (request) => {
    if (isCrashPoint(request)) crash.abort()
    return scriptedAgent(request)
  }
  const packageOf = createRequire(join(place.packages, "..", "package.json"))
  const model = options.model
    ? undefined
    : await startScriptedModel(crashing, async () => packageOf("@copilotkit/aimock"))
  try {
    const paint = createPaint(wantsColour(process.env, process.stdout.isTTY === true))
    return await demonstrate(place, model, crash.signal, paint)
  } finally {
    await model?.close()
    if (!options.keep || signal.aborted) place.remove()
  }
}

const main = async (): Promise<number> => {
  const stop = new AbortController()
  let interrupted: number | undefined
  for (const name of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    process.once(name, () => {
      interrupted = 128 + constants.signals[name]
      stop.abort(new Error("interrupted"))
    })
  }
  try {
    return (await runDemo(readOptions(process.env), stop.signal)) ? 0 : 1
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    const text = interrupted ? "interrupted; what it started is ended, what it wrote is removed" : reason
    process.stderr.write(`\ndemo: ${text}\n`)
    return interrupted ?? 1
  }
}

process.exitCode = await main()
