import { readFileSync } from "node:fs"
import { createRequire } from "node:module"
import { join } from "node:path"
import { type Script, type ScriptedModel, startScriptedModel } from "../../test/support/scripted-model.ts"
import { runAgent } from "./agent-run.ts"
import { runChild } from "./child-process.ts"
import { type Evidence, hasFailed, judge } from "./claims.ts"
import {
  renderAgentEnd,
  renderCommand,
  renderCrash,
  renderEnd,
  renderHeader,
  renderHeading,
  renderTask,
} from "./frame.ts"
import { firstRequests } from "./knowledge.ts"
import { createLedgerView, descriptionParts, recordedCompactions } from "./ledger-view.ts"
import type { DemoOptions } from "./options.ts"
import type { Paint } from "./paint.ts"
import { prepareProject } from "./prepare-project.ts"
import { createProgress } from "./progress.ts"
import { renderClaims, renderKnowledge, renderShow, renderStanding, renderTimeline } from "./report.ts"
import { isCrashPoint, SUMMARIES, scriptedAgent } from "./scripted-agent.ts"
import { countCompactions, deleteSession, openCodeVersion } from "./session.ts"
import { FROZEN_FILE, PROJECT_FILES, pastedMessage, TASK, workerMessage } from "./slug-project.ts"
import { type LeftBehind, untoldIn } from "./standing.ts"
import { findTraces, placesToLookAt } from "./traces.ts"
import { createWorkspace, type Workspace } from "./workspace.ts"

export type DemoOutput = { write: (text: string) => void; paint: Paint; signal: AbortSignal }

const runTest = async ({ directory, isolated }: Workspace, signal: AbortSignal): Promise<Evidence["test"]> => {
  const { exitCode, stdout } = await runChild(["node", "--test"], { cwd: directory, environment: isolated, signal })
  const count = (name: string) => new RegExp(`[#ℹ] ${name} (\\d+)`).exec(stdout)?.[1] ?? "?"
  return { passes: exitCode === 0, summary: `node --test: ${count("pass")} of ${count("tests")}` }
}

/** @returns whether every asserted claim holds */
const demonstrate = async (
  options: DemoOptions,
  workspace: Workspace,
  model: ScriptedModel | undefined,
  crash: AbortSignal,
  { write, paint, signal }: DemoOutput,
): Promise<boolean> => {
  const startedAt = Date.now()
  const context = { options, workspace, signal }
  const say = (...lines: string[]): void => write(`${lines.join("\n")}\n`)
  let section = 0
  const head = (title: string, remark = ""): void => say("", renderHeading(++section, title, remark, paint))

  say(...renderHeader(options, await openCodeVersion(context), paint))
  head(
    "A project with a failing test, a task in the ledger",
    options.withBaton ? "Baton by ./scripts/install" : "no Baton",
  )
  await prepareProject(options, workspace, model?.url, signal)
  const ledger = createLedgerView(options, workspace, signal)
  const taskID = await ledger.add(TASK)
  say(...renderTask(taskID, options, paint))

  head("opencode run: the agent works, and its context fills up again and again")
  const progress = createProgress(write, paint, (number) => (model ? (SUMMARIES[number - 1]?.shown ?? "") : ""))
  const message = options.withBaton ? workerMessage(taskID) : pastedMessage(taskID)
  let run = await runAgent(context, message, progress, crash)
  let leftBehind: LeftBehind | undefined
  if (crash.aborted && run.exitCode === null) {
    leftBehind = { sessionID: run.sessionID ?? "", ...(await ledger.read(taskID)) }
    say(...renderCrash(taskID, paint))
    const next = await runAgent(context, `Task: ${taskID}\n`, progress)
    run = { ...next, seconds: run.seconds + next.seconds }
  }
  say(...renderAgentEnd(run, paint))
  const compactions = model
    ? model.received("compaction").length
    : run.sessionID
      ? await countCompactions(context, run.sessionID)
      : 0

  const told = model ? firstRequests(model.requests, taskID) : []
  const afterCrash = leftBehind && told.findLast(({ after }) => after === "nothing")?.conversation
  if (model) {
    head("What the model is told at the beginning, after each compaction and after the crash")
    const kinds = SUMMARIES.map(({ kind }) => kind)
    say(...renderKnowledge(told, kinds, paint), ...(afterCrash ? renderStanding(afterCrash, paint) : []))
  }

  const task = await ledger.read(taskID)
  const recorded = recordedCompactions(task)
  const { specification } = descriptionParts(task.description)
  head("What an observer sees")
  say(renderCommand(`prog show ${taskID} --json`, "its compactions, UTC", paint), ...renderTimeline(recorded, paint))
  say(renderCommand(`prog show ${taskID}`, "shortened", paint))
  say(...renderShow(await ledger.show(taskID), task, specification, paint))

  head("Checked")
  const claims = judge(
    {
      exitCode: run.exitCode,
      compactions,
      recorded,
      specification: { ordered: TASK.specification, inLedger: specification },
      ...(model ? { knowledge: told.map(({ knowledge }) => knowledge) } : {}),
      ...(leftBehind && afterCrash ? { untold: untoldIn(afterCrash, leftBehind) } : {}),
      test: await runTest(workspace, signal),
      isFrozenFileUntouched:
        readFileSync(join(workspace.directory, FROZEN_FILE), "utf8") === PROJECT_FILES[FROZEN_FILE],
      status: task.status,
      ...(model
        ? { traces: findTraces(placesToLookAt(options.repository, process.env), workspace.root, startedAt) }
        : {}),
      root: workspace.root,
    },
    model !== undefined,
  )
  say(...renderClaims(claims, paint))
  const isForgotten = !model && !options.keep && run.sessionID ? await deleteSession(context, run.sessionID) : undefined
  say("", ...renderEnd({ options, workspace, taskID, passed: !hasFailed(claims), isForgotten }, paint))
  return !hasFailed(claims)
}

/**
 * Runs the demo and takes away what it made, whatever happens; only what the user asked to keep stays, unless the demo
 * is interrupted.
 *
 * @returns whether every asserted claim holds
 * @throws when a part of the demo itself fails, or the signal's reason when it was interrupted
 */
export const runDemo = async (options: DemoOptions, output: DemoOutput): Promise<boolean> => {
  const workspace = createWorkspace(options)
  const crash = new AbortController()
  const crashing: Script = (request) => {
    if (isCrashPoint(request)) crash.abort()
    return scriptedAgent(request)
  }
  const packageOf = createRequire(join(options.packages, "..", "package.json"))
  const model = options.model
    ? undefined
    : await startScriptedModel(crashing, async () => packageOf("@copilotkit/aimock"))
  try {
    return await demonstrate(options, workspace, model, crash.signal, output)
  } finally {
    await model?.close()
    if (!options.keep || output.signal.aborted) workspace.remove()
  }
}
