import { readFileSync } from "node:fs"
import { createRequire } from "node:module"
import { constants } from "node:os"
import { join } from "node:path"
import { splitHandoffs } from "../../.opencode/baton/ledger/description.ts"
import { type ScriptedModel, startScriptedModel } from "../../test/support/model/scripted-model.ts"
import { countCompactions, runAgent } from "./agent-run.ts"
import { factsOf, firstRequests, hasFailed, judge, type LeftBehind, readCompactions, untoldIn } from "./claims.ts"
import { LINE_1, LINE_2 } from "./line.ts"
import { createPlace, type DemoOptions, findTraces, type Place, prepareProject } from "./place.ts"
import * as report from "./report.ts"
import { createScriptedAgent, isCrashPoint, summariesOf } from "./scripted-agent.ts"
import {
  BEGIN,
  FROZEN_FILE,
  LATER,
  PROJECT_FILES,
  pastedMessage,
  TASK,
  testCount,
  UNDONE,
  WAIT,
  workerMessage,
} from "./slug-project.ts"
import { talk } from "./talk.ts"

const { paint } = report
const write = (text: string): void => void process.stdout.write(text)
const say = (...lines: string[]): void => write(`${lines.join("\n")}\n`)
/** A second-level heading: the command that prints the following lines. */
const sayCommand = (command: string, remark: string): void =>
  say(`   ${paint("cyan", "$")} ${command}  ${paint("dim", remark)}`)

/** A task as `prog show --json` prints it. */
type LedgerTask = { status: string; description: string; logs: readonly { message: string; created_at: string }[] }

/** @returns whether every asserted claim holds */
const demonstrate = async (place: Place, model: ScriptedModel | undefined, crash: AbortSignal): Promise<boolean> => {
  const { options, directory, root, repository } = place
  const kinds = summariesOf(options.line)
  let section = 0
  const head = (title: string, remark = ""): void =>
    say("", `${paint("cyan", String(++section))}  ${paint("bold", title)}  ${paint("dim", remark)}`.trimEnd())
  /** The ledger as seen from outside: only through the prog command. */
  const prog = async (...args: string[]): Promise<string> =>
    (await place.succeed(join(repository, ".opencode", "baton", "bin", "prog"), ...args)).trimEnd()
  const readTask = async (): Promise<LedgerTask> => JSON.parse(await prog("show", taskID, "--json"))

  say(
    ...report.renderHeader(
      options,
      (await place.succeed(options.opencode, "--version")).trim().replace(/^opencode v/, ""),
    ),
  )
  const installed = options.withBaton ? "Baton by ./scripts/install" : "no Baton"
  head("A project with a failing test, a task in the ledger", installed)
  await prepareProject(place, model?.url)
  const { title, definitionOfDone, specification: ordered } = TASK
  const taskID = await prog("add", title, "-p", "slugs", "--dod", definitionOfDone, "--desc", ordered)
  say(...report.renderTask(taskID, options, model !== undefined))

  let session: string | undefined
  if (model && options.withBaton) {
    const canUndo = options.line.number === 1
    head(`The user talks: an order, a second one${canUndo ? ", and one that is undone" : ""}`)
    const said = [{ text: `${workerMessage(taskID)}${WAIT}` }, { text: LATER }]
    const all = canUndo ? [...said, { text: UNDONE, isUndone: true } as const] : said
    session = await talk(place, all, (one) => say(report.renderSaid(one)))
  }

  head("opencode run: the agent works, and its context fills up again and again")
  const progress = report.createProgress(write, (number) => (model && kinds[number - 1]?.shown) ?? "")
  const summaries = model && options.line.number === 2 ? () => model.received("compaction").length : undefined
  const runShown = (message: string, more: { crash?: AbortSignal; session?: string | undefined } = {}) =>
    runAgent(place, message, { show: progress.show, summaries, ...more }).finally(progress.end)
  const order = session ? BEGIN : options.withBaton ? workerMessage(taskID) : pastedMessage(taskID)
  let run = await runShown(order, { crash, session })
  let leftBehind: Omit<LeftBehind, "description"> | undefined
  if (crash.aborted && run.exitCode === null) {
    leftBehind = { sessionID: run.sessionID ?? "", logs: (await readTask()).logs }
    const remark = paint("dim", "in the middle of the work; then, with nothing else:")
    say(`   ${paint("red", "✗ kill -9")}  ${remark} opencode run "Task: ${taskID}"`)
    const next = await runShown(`Task: ${taskID}\n`)
    run = { ...next, seconds: run.seconds + next.seconds }
  }
  say(...report.renderAgentEnd(run))
  const counted = model?.received("compaction").length
  const compactions = counted ?? (run.sessionID ? await countCompactions(place, run.sessionID) : 0)

  const told = model && firstRequests(model.requests, taskID, factsOf(options.line))
  const afterCrash = leftBehind && told?.findLast(({ after }) => after === "nothing")?.conversation
  if (told) {
    head("What the model is told at the beginning, after each compaction and after the crash")
    const names = kinds.map(({ kind }) => kind)
    say(...report.renderKnowledge(told, names), ...(afterCrash ? report.renderStanding(afterCrash) : []))
  }

  const task = await readTask()
  const recorded = readCompactions(task.logs)
  head("What an observer sees")
  sayCommand(`prog show ${taskID} --json`, "its compactions, UTC")
  say(...report.renderTimeline(recorded))
  sayCommand(`prog show ${taskID}`, "shortened, without the compactions above")
  say(...report.renderShow(await prog("show", taskID)))

  head("Checked")
  const { exitCode, stdout } = await place.run("node", "--test")
  const [passed = "?", tests = "?"] = [testCount(stdout, "pass"), testCount(stdout, "tests")]
  const evidence = {
    exitCode: run.exitCode,
    compactions,
    recorded,
    specification: { ordered, inLedger: splitHandoffs(task.description).specification },
    told: told?.map(({ isTold }) => isTold),
    untold:
      leftBehind && afterCrash ? untoldIn(afterCrash, { ...leftBehind, description: task.description }) : undefined,
    test: { passes: exitCode === 0, summary: `node --test: ${passed} of ${tests}` },
    isFrozenFileUntouched: readFileSync(join(directory, FROZEN_FILE), "utf8") === PROJECT_FILES[FROZEN_FILE],
    status: task.status,
    traces: model && (await findTraces(place)),
    root,
  }
  const claims = judge(evidence, model !== undefined)
  say(...report.renderClaims(claims))
  const isOwnSession = !model && !options.keep && run.sessionID
  const deleted = isOwnSession ? await place.openCode(["session", "delete", isOwnSession]) : undefined
  const isGood = !hasFailed(claims)
  say("", ...report.renderEnd(place, taskID, isGood, deleted?.exitCode === 0))
  return isGood
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
  const packageOf = createRequire(join(place.packages, "..", "package.json"))
  const agent = createScriptedAgent(options.line)
  const start = () =>
    startScriptedModel(
      (request) => {
        if (isCrashPoint(request)) crash.abort()
        return agent(request)
      },
      async () => packageOf("@copilotkit/aimock"),
    )
  const model = options.model ? undefined : await start()
  try {
    return await demonstrate(place, model, crash.signal)
  } finally {
    await model?.close()
    if (!options.keep || signal.aborted) place.remove()
  }
}

const stop = new AbortController()
let interrupted: number | undefined
for (const name of ["SIGINT", "SIGTERM", "SIGHUP"] as const)
  process.once(name, () => {
    interrupted = 128 + constants.signals[name]
    stop.abort(new Error("interrupted; what it started is ended, what it wrote is removed"))
  })
// From the command line, as scripts/demo has checked it; an option that was not given is an empty variable.
const { DEMO_MODEL, DEMO_KEEP, DEMO_OPENCODE, DEMO_WITHOUT_BATON, DEMO_LINE } = process.env
const options: DemoOptions = {
  opencode: DEMO_OPENCODE || process.execPath,
  model: DEMO_MODEL || undefined,
  keep: DEMO_KEEP || undefined,
  withBaton: !DEMO_WITHOUT_BATON,
  line: DEMO_LINE === "2" ? LINE_2 : LINE_1,
}
try {
  process.exitCode = (await runDemo(options, stop.signal)) ? 0 : 1
} catch (error) {
  const reason = interrupted ? stop.signal.reason : error
  process.stderr.write(`\ndemo: ${reason instanceof Error ? reason.message : String(reason)}\n`)
  process.exitCode = interrupted ?? 1
}
