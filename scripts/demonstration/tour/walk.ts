import { readdirSync } from "node:fs"
import { findProcessesOf } from "../../../test/support/fault-leftovers.ts"
import { snapshotTree } from "../../../test/support/folder-tree.ts"
import type { OpenCodeBinary } from "../../../test/support/opencode-binary.ts"
import { eventually } from "../../../test/support/opencode-server.ts"
import { type ModelRequest, startScriptedModel } from "../../../test/support/scripted-model.ts"
import { createTourAgent } from "./agent.ts"
import { type Conversation, converseByRun, converseInTui } from "./conversation.ts"
import { startWebObserver, watchInTerminal, watchWithoutTerminal } from "./observers.ts"
import { type CommandSeen, createTourPlace, type TourPlace } from "./place.ts"
import { ANSWERS, CORRECTION, POLICY, RELEASE_NOTE, SAID, startMessage, TASK } from "./story.ts"

export type TourOptions = {
  binary: OpenCodeBinary
  /** Whether the user works in OpenCode's TUI, or by `opencode run` alone. */
  inTui: boolean
  /** Whether `baton observe` is watched in a terminal, or prints once. */
  hasTerminal: boolean
  /** Opens the page and waits until an agent is busy there. @returns the page's text */
  browse?: (url: string) => Promise<string>
}

type Tree = ReturnType<typeof snapshotTree>
export type CommandName =
  | "install"
  | "doctor"
  | "add"
  | "goOn"
  | "other"
  | "show"
  | "learned"
  | "passes"
  | "handoffs"
  | "health"
  | "uninstall"
export type SightName = "reviewed" | "tested" | "draft" | "begun"

/** What the user saw at each step, and what the model was sent. */
export type TourSeen = {
  taskID: string
  /** The session that the work was handed over to. */
  handedTo: string
  commands: Record<CommandName, CommandSeen>
  /** The terminal, or what `opencode run` printed, when the agent had answered. */
  sights: Record<SightName, string>
  /** Every request to the model, oldest first. */
  requests: readonly ModelRequest[]
  /** `baton observe` and the text of its page while the new session is at work. */
  observed: { terminal: string; page: string | undefined; webExit: number | null }
  /** The project before and after the installation and at the end; the home folder's other paths at the end. */
  trees: { before: Tree; installed: Tree; after: Tree; home: string[] }
  /** The agents' own work, as it stands at the end. */
  work: { parser: string; note: string }
  /** What is left in TMPDIR, and processes that still run. */
  left: { temporary: string[]; processes: string[] }
}

const BIN = ".opencode/baton/bin"
const PROJECT = "~/my-project"

const addTask = ({ run }: TourPlace): Promise<CommandSeen> => {
  const { title, definitionOfDone, specification } = TASK
  const options = ["-p", "my-project", "--dod", definitionOfDone, "--desc", specification]
  return run(`${BIN}/prog`, "add", title, ...options)
}

/** The user's day with the agent. @param release lets the handed-over session's first turn end */
const work = async (
  place: TourPlace,
  options: TourOptions,
  { conversation, taskID, release }: { conversation: Conversation; taskID: string; release: () => void },
) => {
  const { say } = conversation
  const web = await startWebObserver(place)
  try {
    await say(startMessage(taskID), ANSWERS.start)
    await say(CORRECTION, ANSWERS.corrected)
    const reviewed = await say(SAID.review, ANSWERS.reviewed)
    await say(SAID.mend, ANSWERS.mended)
    await say(SAID.take, ANSWERS.taken)
    const tested = await say(SAID.test, ANSWERS.tested)
    const { draft, handedTo, begun } = await conversation.handOver(SAID.goal)
    // Should it fail while others look on, that is told where it is waited for.
    begun.catch(() => undefined)
    const expected = new RegExp(`busy[\\s\\S]*${TASK.title}[\\s\\S]*${handedTo} · [\\s\\S]*Handoff to ${handedTo}`)
    const terminal = await (options.hasTerminal ? watchInTerminal : watchWithoutTerminal)(place, expected)
    const page = await options.browse?.(web.url)
    release()
    const sights = { reviewed, tested, draft, begun: await begun }
    return { handedTo, sights, observed: { terminal, page, webExit: await web.stop() } }
  } finally {
    release()
    await web.stop()
  }
}

const lookBack = async ({ run }: TourPlace, taskID: string) => ({
  show: await run(`${BIN}/prog`, "show", taskID),
  learned: await run(`${BIN}/baton`, "learned"),
  passes: await run(`${BIN}/baton`, "passes"),
  handoffs: await run(`${BIN}/baton`, "handoffs"),
  health: await run(`${BIN}/baton`, "doctor"),
})

const walk = async (
  place: TourPlace,
  options: TourOptions,
  { requests, release }: { requests: readonly ModelRequest[]; release: () => void },
): Promise<TourSeen> => {
  const { project, run } = place
  const before = snapshotTree(project.directory)
  const install = await run("~/baton/scripts/install", PROJECT)
  const installed = snapshotTree(project.directory)
  const doctor = await run("~/baton/scripts/doctor", PROJECT)
  project.write(POLICY.path, POLICY.text)
  const add = await addTask(place)
  const taskID = add.output.trim()
  const conversation = options.inTui ? await converseInTui(options.binary, place) : converseByRun(place)
  try {
    const { sights, ...worked } = await work(place, options, { conversation, taskID, release })
    await conversation.end()
    const goOn = await run("opencode", "run", "--continue", SAID.write)
    const other = await run("opencode", "run", SAID.other)
    const looks = await lookBack(place, taskID)
    const uninstall = await run("~/baton/scripts/install", PROJECT, "--uninstall", "--purge")
    const noneLeft = async () => ((await findProcessesOf(project)).length === 0 ? true : undefined)
    await eventually("the end of every process", noneLeft).catch(() => undefined)
    return {
      taskID,
      ...worked,
      commands: { install, doctor, add, goOn, other, ...looks, uninstall },
      sights,
      requests,
      trees: { before, installed, after: snapshotTree(project.directory), home: place.homePaths() },
      work: { parser: project.read("src/parser.js"), note: project.read(RELEASE_NOTE.path) },
      left: { temporary: readdirSync(project.environment.TMPDIR ?? ""), processes: await findProcessesOf(project) },
    }
  } finally {
    await conversation.stop()
  }
}

/** One walk through all of Baton in one project, with a scripted model; leaves nothing behind. */
export const takeTour = async (options: TourOptions): Promise<TourSeen> => {
  let release = (): void => undefined
  const released = new Promise<void>((resolve) => {
    release = resolve
  })
  const model = await startScriptedModel(createTourAgent(released))
  const place = await createTourPlace(options.binary, model.url)
  try {
    return await walk(place, options, { requests: model.requests, release })
  } finally {
    await model.close()
    if (!process.env.BATON_KEEP_PROJECTS) await place.project.remove()
  }
}
