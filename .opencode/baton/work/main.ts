/** `baton work`: agents that work through a project's tasks. Exits as docs/workers.md says. */
import { hostname } from "node:os"
import { complain, print, printJSON, runCommand } from "../host/cli.ts"
import { describeError } from "../host/log.ts"
import { nearestProject } from "../host/project.ts"
import { leaveWorkNote } from "../host/work-note.ts"
import { findFolderProject } from "../ledger/embedded/folder-project.ts"
import { printBranches, runDrop } from "./branches-command.ts"
import { checksOf } from "./checks.ts"
import { chooseDisplay } from "./display.ts"
import { openWorkLedger, type Worker, type WorkLedger } from "./ledger.ts"
import { createLoop, EXIT } from "./loop.ts"
import { parseWorkOptions, type WorkOptions } from "./options.ts"
import { NotReady, preflight, probeModel } from "./preflight.ts"
import { endMarked, WORKER_MARK } from "./processes.ts"
import { findOpenCode, readWorkerPrompt } from "./prompt.ts"
import type { RunDeps } from "./run.ts"
import { openWorktrees } from "./worktrees.ts"

const WANTED = { pause: "paused", resume: "active", drain: "draining", stop: "stopped" } as const

type Request = { readonly directory: string } & (
  | { readonly action: "work"; readonly options: WorkOptions }
  | {
      readonly action: "status" | keyof typeof WANTED | "branches"
      readonly project: string | undefined
      readonly json: boolean
    }
  | { readonly action: "drop"; readonly task: string }
)

const isAction = (word: string | undefined): word is "status" | keyof typeof WANTED | "branches" =>
  word === "status" || word === "branches" || (word !== undefined && Object.hasOwn(WANTED, word))

const parse = (args: readonly string[], here: string): Request => {
  const directory = nearestProject(here)
  const [word, ...rest] = args
  if (word === "drop") {
    const [task, ...others] = rest
    if (task === undefined || others.length > 0) throw new Error("expected the id of a task: baton work drop ID")
    return { directory, action: "drop", task }
  }
  if (isAction(word)) {
    const { project, json } = parseWorkOptions(rest)
    return { directory, action: word, project, json }
  }
  if (word !== undefined && !word.startsWith("-"))
    throw new Error(`expected an option, or status, pause, resume, drain, stop, branches or drop, received '${word}'`)
  return { directory, action: "work", options: parseWorkOptions(args) }
}

const workerLine = ({ id, alive, state, slots, project, directory, note }: Worker): string =>
  `${id}  ${alive ? state : "gone"}${note === "" ? "" : ` (${note})`}  ${slots} at once  ${project}  ${directory}`

const status = async (ledger: WorkLedger, project: string, wantsJSON: boolean): Promise<number> => {
  const [workers, queue] = await Promise.all([ledger.workers(project), ledger.queue(project)])
  const runs = (await ledger.runs(project, new Date().toISOString())).filter(
    ({ ended, worker }) => ended === "" && worker !== "",
  )
  if (wantsJSON) printJSON({ workers, runs, queue })
  else {
    print(workers.length === 0 ? `no baton work runs on ${project}` : workers.map(workerLine).join("\n"))
    for (const run of runs) print(`  ${run.task_id}  run ${run.n}  ${run.worker}  ${run.title}`)
    print(
      `${queue.ready} ready, ${queue.later} later, ${queue.waiting} waiting for others, ${queue.blocked.length} blocked`,
    )
    for (const { task, title, reason } of queue.blocked) print(`  ${task}  ${title}: ${reason || "blocked"}`)
  }
  return 0
}

const tell = async (ledger: WorkLedger, project: string, action: keyof typeof WANTED): Promise<number> => {
  const asked = await ledger.want(WANTED[action], project)
  if (asked.length === 0) {
    complain(`work: no baton work runs on ${project}`)
    return EXIT.failed
  }
  // It looks every few seconds.
  for (const worker of asked) print(`${worker.id}: ${action}`)
  return 0
}

/** Ends the agents of workers that were killed: their tasks are handed out again, in their sessions. */
const sweep = async (ledger: WorkLedger, project: string, say: (text: string) => void): Promise<void> => {
  for (const worker of await ledger.workers(project)) {
    if (worker.alive || !worker.own) continue
    const ended = await endMarked(WORKER_MARK, worker.id)
    if (ended > 0) say(`${worker.id} was killed; ${ended} of its processes are ended`)
    await ledger.beat({ ...worker, state: "ended" }, [])
  }
}

const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const

const work = async (directory: string, options: WorkOptions): Promise<number> => {
  const project = options.project ?? (await findFolderProject(directory))
  const ledger = openWorkLedger(directory)
  const display = chooseDisplay(options.json, project)
  const say = (text: string): void => display.tell({ event: "info", text })
  const id = `${hostname().split(".")[0]}-${process.pid}`
  const worker = { id, project, directory, slots: options.slots }
  const started = new Date().toISOString()
  /** Until there are agents that may come to their end. */
  const abort = (): void => void endMarked(WORKER_MARK, id).finally(() => process.exit(EXIT.stopped))
  for (const signal of SIGNALS) process.on(signal, abort)
  try {
    const opencode = findOpenCode()
    const worktrees = options.worktrees ? openWorktrees(directory) : undefined
    await sweep(ledger, project, say)
    await worktrees?.tidy(ledger)
    const queue = await ledger.queue(project)
    const probe = { opencode, directory, args: options.args, workerID: id }
    if (queue.tasks.length === 0 && queue.at_work === 0 && queue.counts.in_progress === 0) {
      say(`project ${project} has no open task`)
      return EXIT.over
    }
    await preflight({
      ...probe,
      options,
      queue,
      worktrees,
      ledger,
      worker: { ...worker, state: "working", note: "" },
      say,
    })
    const checks = checksOf(queue)
    const runDeps = (slot: number): Omit<RunDeps, "isRunning"> => ({
      ...{ opencode, directory, options, ledger, worktrees, checks, workerID: id },
      holder: `${id}.${slot}`,
      prompt: () => readWorkerPrompt(directory),
      say: display.tell,
      nowMs: Date.now,
    })
    const loop = createLoop({
      ...{ options, ledger, project, worker, runDeps },
      probe: () => probeModel(probe),
      tell: display.tell,
      nowMs: Date.now,
    })
    for (const signal of SIGNALS) {
      process.off(signal, abort)
      process.on(signal, signal === "SIGINT" ? loop.interrupt : () => loop.stop(`it got ${signal}`))
    }
    display.start(loop)
    try {
      return await loop.run()
    } finally {
      display.end()
      try {
        leaveWorkNote(directory, { since: started, project })
      } catch (error) {
        say(`the next session is not told that there is a report: ${describeError(error)}`)
      }
    }
  } catch (error) {
    display.end()
    await ledger.beat({ ...worker, state: "ended", note: "" }, []).catch(() => undefined)
    if (!(error instanceof NotReady)) throw error
    complain(`work: ${error.message}\nNo task was touched.`)
    return EXIT.failed
  }
}

const run = async (request: Request): Promise<number> => {
  const { directory } = request
  try {
    switch (request.action) {
      case "work":
        return await work(directory, request.options)
      case "drop":
        return await runDrop(directory, request.task)
      case "branches":
        return await printBranches(directory, request.json)
      case "status":
        return await status(
          openWorkLedger(directory),
          request.project ?? (await findFolderProject(directory)),
          request.json,
        )
      default:
        return await tell(
          openWorkLedger(directory),
          request.project ?? (await findFolderProject(directory)),
          request.action,
        )
    }
  } catch (error) {
    complain(`work: ${error instanceof Error ? error.message : String(error)}`)
    return EXIT.failed
  }
}

await runCommand({ name: "work", parse, run })
