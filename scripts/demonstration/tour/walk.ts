import { readdirSync } from "node:fs"
import { createDeferred } from "../../../.opencode/baton/host/async.ts"
import { awaitNoProcesses } from "../../../test/support/faults/fault-leftovers.ts"
import { snapshotTree } from "../../../test/support/files/folder-tree.ts"
import { type ModelRequest, startScriptedModel } from "../../../test/support/model/scripted-model.ts"
import { startObserver } from "../../../test/support/opencode/observer.ts"
import type { OpenCodeBinary } from "../../../test/support/opencode/opencode-binary.ts"
import * as places from "./place.ts"
import { ANSWERS, CORRECTION, createTourAgent, POLICY, RELEASE_NOTE, SAID, startMessage, TASK } from "./story.ts"

type TourOptions = {
  binary: OpenCodeBinary
  /** The user works in OpenCode's TUI; otherwise by `opencode run` alone. */
  inTui: boolean
  /** Opens the page and waits until an agent is busy there. @returns the page's text */
  browse?: (url: string) => Promise<string>
}

const BIN = ".opencode/baton/bin"
const PROJECT = "~/my-project"

/**
 * The user's day with the agent.
 *
 * @returns the session that received the handoff; the terminal, or the output of `opencode run`, after the agent's answers; and
 * `baton observe` and the text of its page while the new session is busy
 * @param release lets the handed-over session's first turn end
 */
const work = async (
  place: places.TourPlace,
  options: TourOptions,
  { conversation, taskID, release }: { conversation: places.Conversation; taskID: string; release: () => void },
) => {
  const { say } = conversation
  const web = startObserver(place.project)
  try {
    await say(startMessage(taskID), ANSWERS.start)
    await say(CORRECTION, ANSWERS.corrected)
    const reviewed = await say(SAID.review, ANSWERS.reviewed)
    await say(SAID.mend, ANSWERS.mended)
    await say(SAID.take, ANSWERS.taken)
    const tested = await say(SAID.test, ANSWERS.tested)
    const { draft, handedTo, begun } = await conversation.handOver(SAID.goal)
    // Handled here too, since it may fail before it is awaited.
    begun.catch(() => undefined)
    const expected = new RegExp(`busy[\\s\\S]*${TASK.title}[\\s\\S]*${handedTo} · [\\s\\S]*Handoff to ${handedTo}`)
    const terminal = await places.watch(place, expected)
    const page = await options.browse?.(await web.address())
    release()
    const sights = { reviewed, tested, draft, begun: await begun }
    return { handedTo, sights, observed: { terminal, page, webExit: await web.stop() } }
  } finally {
    release()
    await web.stop()
  }
}

const walk = async (
  place: places.TourPlace,
  options: TourOptions,
  { requests, release }: { requests: readonly ModelRequest[]; release: () => void },
) => {
  const { project, run } = place
  const before = snapshotTree(project.directory)
  const install = await run("~/baton/scripts/install", PROJECT)
  const installed = snapshotTree(project.directory)
  const doctor = await run("~/baton/scripts/doctor", PROJECT)
  project.write(POLICY.path, POLICY.text)
  const described = ["-p", "my-project", "--dod", TASK.definitionOfDone, "--desc", TASK.specification]
  const add = await run(`${BIN}/prog`, "add", TASK.title, ...described)
  const taskID = add.output.trim()
  const conversation = options.inTui ? await places.converseInTui(options.binary, place) : places.converseByRun(place)
  try {
    const worked = await work(place, options, { conversation, taskID, release })
    await conversation.end()
    const goOn = await run("opencode", "run", "--continue", SAID.write)
    const other = await run("opencode", "run", SAID.other)
    const show = await run(`${BIN}/prog`, "show", taskID)
    const [learned, passes] = [await run(`${BIN}/baton`, "learned"), await run(`${BIN}/baton`, "passes")]
    const [handoffs, health] = [await run(`${BIN}/baton`, "handoffs"), await run(`${BIN}/baton`, "doctor")]
    const uninstall = await run("~/baton/scripts/install", PROJECT, "--uninstall", "--purge")
    const processes = await awaitNoProcesses(project)
    return {
      taskID,
      ...worked,
      commands: { install, doctor, add, goOn, other, show, learned, passes, handoffs, health, uninstall },
      requests,
      /** The project before and after the installation and at the end; the home folder's other paths at the end. */
      trees: { before, installed, after: snapshotTree(project.directory), home: place.homePaths() },
      /** The agents' own work at the end. */
      work: { parser: project.read("src/parser.js"), note: project.read(RELEASE_NOTE.path) },
      /** Files left in TMPDIR, and processes that still run. */
      left: { temporary: readdirSync(project.environment.TMPDIR ?? ""), processes },
    }
  } finally {
    await conversation.stop()
  }
}

/** The user's view at each step, and the model's requests. */
export type TourSeen = Awaited<ReturnType<typeof walk>>

/** One walk through all of Baton in one project, with a scripted model; cleans up completely. */
export const takeTour = async (options: TourOptions): Promise<TourSeen> => {
  const { promise: released, resolve: release } = createDeferred<void>()
  const model = await startScriptedModel(createTourAgent(released))
  const place = places.createTourPlace(options.binary, model.url)
  try {
    return await walk(place, options, { requests: model.requests, release })
  } finally {
    await model.close()
    if (!process.env.BATON_KEEP_PROJECTS) await place.project.remove()
  }
}
