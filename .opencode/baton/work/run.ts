import { realpathSync } from "node:fs"
import { setTimeout as pause } from "node:timers/promises"
import { readHost } from "../host/process-identity.ts"
import { type Agent, startAgent } from "./agent.ts"
import { checksIn, redLine, runCheck } from "./checks.ts"
import { firstMessage, judgeExit, resumeMessage, type Stopped, sessionToResume } from "./judge.ts"
import type { RunState, Taken, WorkLedger } from "./ledger.ts"
import { type LiveView, readLive } from "./live.ts"
import type { WorkOptions } from "./options.ts"
import { endMarked, isTaskAtWork, RUN_MARK } from "./processes.ts"
import { branchOf, type Worktrees } from "./worktrees.ts"

// One run of one agent on one task, from its start to what becomes of the task.

export type RunView = {
  readonly task: string
  readonly title: string
  readonly run: number
  readonly holder: string
  readonly startedMs: number
  readonly session: string
  readonly isResumed: boolean
  readonly steps: number
  readonly compactions: number
  readonly tokens: number
  readonly last: string
  readonly retry: LiveView["retry"]
}

export type RunningTask = {
  readonly view: () => RunView
  /** Ends the agent and all that it started. */
  readonly stop: (why: Stopped) => Promise<void>
  readonly ended: Promise<RunState>
}

export type RunEvent =
  | {
      readonly event: "started"
      readonly task: string
      readonly title: string
      readonly run: number
      readonly isResumed: boolean
      readonly directory: string
    }
  | {
      readonly event: "check"
      readonly task: string
      readonly command: string
      readonly outcome: "green" | "red" | "not allowed"
    }

export type RunDeps = {
  readonly opencode: string
  /** The project's folder. */
  readonly directory: string
  readonly options: WorkOptions
  readonly ledger: Pick<WorkLedger, "endRun" | "log" | "show">
  readonly worktrees: Worktrees | undefined
  readonly workerID: string
  readonly holder: string
  /** The text of prompts/worker.md. */
  readonly prompt: () => string
  /** The checks that stood in each task when the person began the work: no other is run, and none that an agent took out is forgotten. */
  readonly checks: ReadonlyMap<string, readonly string[]>
  /** True while this program has a run of the task that is not over: what its agent left is not committed yet, or not checked. */
  readonly isRunning: (task: string) => boolean
  readonly say: (event: RunEvent) => void
  readonly nowMs: () => number
}

const LOOK_MS = 1_000
/** A provider is left time to come back: OpenCode asks it again by itself. */
const LONGEST_RETRY_MS = 5 * 60_000
/** A provider that has not failed again by then, after its next try was due, has answered. */
const RETRY_OVER_MS = 60_000
/** Between two looks at an agent: longer, and the machine was suspended. */
const LONGEST_LOOK_MS = 60_000

const isSaidDone = ({ status }: Pick<RunState, "status">): boolean => status === "done" || status === "reviewing"

/** The provider's failures since the last progress. */
type Retrying = NonNullable<LiveView["retry"]> & { readonly firstMs: number; readonly newestMs: number }

type Watched = {
  startedMs: number
  progressMs: number
  /** The newest look. */
  lookedMs: number
  live: LiveView | undefined
  retry: Retrying | undefined
}

/** Takes what a look at an agent has shown. The time in which the machine was suspended counts for nothing. */
export const noteLook = (watched: Watched, live: LiveView | undefined, now: number): void => {
  const gap = now - watched.lookedMs
  watched.lookedMs = now
  if (gap > LONGEST_LOOK_MS) {
    watched.startedMs += gap
    watched.progressMs = Math.min(now, watched.progressMs + gap)
    if (watched.retry) watched.retry = { ...watched.retry, firstMs: watched.retry.firstMs + gap }
  }
  if (live && live.compactions !== watched.live?.compactions) watched.progressMs = now
  watched.live = live ?? watched.live
  const { retry } = watched
  if (live?.retry) watched.retry = { ...live.retry, firstMs: retry?.firstMs ?? now, newestMs: now }
  // Between two tries it is busy.
  else if (retry && now > Math.max(retry.newestMs, Date.parse(retry.nextAt) || 0) + RETRY_OVER_MS)
    watched.retry = undefined
}

/** The reason to end an agent now. */
export const limitOf = (
  { options, nowMs }: Pick<RunDeps, "options" | "nowMs">,
  { startedMs, progressMs, retry }: Pick<Watched, "startedMs" | "progressMs" | "retry">,
): Stopped | undefined => {
  const now = nowMs()
  const isSilent = now - progressMs > options.stuckMs
  if (retry && (isSilent || now - Math.max(progressMs, retry.firstMs) > LONGEST_RETRY_MS))
    return { kind: "provider", detail: `${retry.message} (asked ${retry.attempt} times)`, next_try: retry.nextAt }
  if (isSilent) return { kind: "stuck", detail: `no progress for ${minutes(options.stuckMs)}` }
  if (now - startedMs > options.maxRunMs) return { kind: "stuck", detail: `longer than ${minutes(options.maxRunMs)}` }
  return undefined
}

const minutes = (ms: number): string => (ms < 60_000 ? `${Math.round(ms / 1_000)} s` : `${Math.round(ms / 60_000)} min`)

type Place = {
  readonly directory: string
  readonly environment: Readonly<Record<string, string>>
  readonly notes: readonly string[]
}

const prepare = ({ task }: Taken, dependencies: readonly string[], deps: RunDeps): Place | Promise<Place> =>
  deps.worktrees?.prepare(task, dependencies) ?? {
    directory: realpathSync(deps.directory),
    environment: {},
    notes: [],
  }

/**
 * A task counts as done while its agent still speaks; its last changes are not committed then, and a red check may open it again. Waits for
 * the end of that run.
 *
 * @returns the reason not to begin
 */
const awaitEarlier = async (
  dependencies: readonly string[],
  { isRunning, ledger, worktrees }: RunDeps,
  current: Pick<Current, "stopped">,
): Promise<Stopped | undefined> => {
  for (const task of dependencies) {
    while (!current.stopped && (isRunning(task) || isTaskAtWork(task))) await pause(LOOK_MS)
    if (current.stopped) return current.stopped
    const { status, title } = await ledger.show(task)
    if (status !== "done" && status !== "canceled")
      return { kind: "stopped", detail: `${task}, which it waits for, is ${status} again` }
    // Another `baton work` may have been killed before it could.
    await worktrees?.commitRest(task, title)
  }
  return current.stopped
}

/** Watches an agent until it has ended. @returns why it was ended by this program */
const watch = async (agent: Agent, place: Place, deps: RunDeps, current: Current): Promise<void> => {
  let isOver = false
  void agent.exited.then(() => {
    isOver = true
  })
  while (!isOver) {
    const live = await readLive(place.directory, { session: agent.seen().session, pid: agent.pid, mark: current.mark })
    noteLook(current, live, deps.nowMs())
    const limit = limitOf(deps, current)
    if (limit && !current.stopped) await current.stop(limit)
    await Promise.race([
      agent.exited,
      new Promise((resolve) => {
        setTimeout(resolve, LOOK_MS)
      }),
    ])
  }
}

type Current = Watched & {
  readonly mark: string
  stopped: Stopped | undefined
  /** The work was stopped: a check that it cut off says nothing, and what it was for is not done yet. */
  isCalledOff: boolean
  readonly stop: (why: Stopped) => Promise<void>
}

const checkMark = (mark: string): string => `check.${mark}`

/** Runs the checks of a task that is said to be done. @returns the task's end after them */
const check = async (
  taken: Taken,
  place: Place,
  end: RunState,
  deps: RunDeps,
  current: Pick<Current, "mark" | "isCalledOff">,
): Promise<RunState> => {
  const { ledger, options, checks, workerID, say } = deps
  const task = taken.task
  const allowed = new Set([...checks.values()].flat())
  const commands = new Set([...(checks.get(task) ?? []), ...checksIn(taken.definition_of_done)])
  for (const command of options.checks && isSaidDone(end) ? commands : []) {
    if (!allowed.has(command)) {
      say({ event: "check", task, command, outcome: "not allowed" })
      await ledger.log(task, `Check not run, since it was not there when the work began: ${command}`)
      continue
    }
    const mark = checkMark(current.mark)
    const at = { directory: place.directory, deadlineMs: options.maxRunMs, mark, workerID }
    const result = current.isCalledOff ? undefined : await runCheck(command, at)
    if (result === undefined || current.isCalledOff) {
      const cutOff = await ledger.endRun({ task, n: taken.run, kind: "not checked", detail: command })
      return cutOff ?? end
    }
    say({ event: "check", task, command, outcome: result.isGreen ? "green" : "red" })
    if (result.isGreen) {
      await ledger.log(task, `Check green: ${command}`)
      continue
    }
    const red = await ledger.endRun({ task, n: taken.run, kind: "check red", detail: redLine(result) })
    await ledger.log(task, `Check red: ${command}\n${result.output}`)
    return red ?? end
  }
  return end
}

const UNKNOWN_END = { session: "", ended: "", next_try: "", tokens: 0, status: "unknown" }

/** Starts the run of a task that was taken. Its end is in the ledger when `ended` resolves, which never rejects. */
export const startRun = (taken: Taken, deps: RunDeps): RunningTask => {
  const { ledger, options, worktrees, holder, workerID, opencode, nowMs } = deps
  const { task, run: n } = taken
  const mark = `${task}.${n}`
  let agent: Agent | undefined
  let isResumed = false
  const current: Current = {
    mark,
    startedMs: nowMs(),
    progressMs: nowMs(),
    lookedMs: nowMs(),
    live: undefined,
    retry: undefined,
    stopped: undefined,
    isCalledOff: false,
    stop: async (why) => {
      // The claim of an agent that has ended by itself is free, which is no reason for its end.
      if (agent?.isAlive() !== false) current.stopped ??= why
      // A limit of this program's ends the agent alone: what it said to be done is checked.
      if (why.kind !== "stopped") return void (await endMarked(RUN_MARK, mark))
      current.isCalledOff = true
      await Promise.all([mark, checkMark(mark)].map((each) => endMarked(RUN_MARK, each)))
    },
  }

  const work = async (): Promise<RunState> => {
    const { dependencies } = await ledger.show(task)
    const notYet = await awaitEarlier(dependencies ?? [], deps, current)
    if (notYet) return (await ledger.endRun({ task, n, ...notYet })) ?? { ...UNKNOWN_END, task, n, ...notYet }
    const place = await prepare(taken, dependencies ?? [], deps)
    const session = sessionToResume(taken.earlier, { host: readHost(), directory: place.directory })
    isResumed = session !== undefined
    deps.say({ event: "started", task, title: taken.title, run: n, isResumed, directory: place.directory })
    agent = startAgent({
      ...{ opencode, session, mark, workerID, holder },
      directory: place.directory,
      environment: place.environment,
      args: options.args,
      message: session === undefined ? firstMessage(taken, deps.prompt(), place.notes) : resumeMessage(taken),
      onProgress: () => {
        current.progressMs = nowMs()
        current.retry = undefined
      },
    })
    // It may have been stopped before it was there.
    if (current.stopped) await current.stop(current.stopped)
    await watch(agent, place, deps, current)
    const exit = await agent.exited
    // Shells that the agent left.
    await endMarked(RUN_MARK, mark)
    const seen = agent.seen()
    const spent = { tools: seen.tools, tokens: seen.tokens, cost: seen.cost }
    const branch = worktrees ? { branch: branchOf(task) } : {}
    const judged = judgeExit(seen, current.stopped, exit)
    const end = await ledger.endRun({ task, n, ...judged, ...spent, ...branch })
    const known = end ?? { ...UNKNOWN_END, task, n, kind: judged.kind, detail: judged.detail }
    if (worktrees && isSaidDone(known)) {
      const complaint = await worktrees.commitRest(task, taken.title)
      if (complaint !== undefined)
        await ledger.log(task, `What is left in the worktree could not be committed: ${complaint}`)
    }
    return check(taken, place, known, deps, current)
  }

  /** Ends a run that failed by no fault of the agent's. */
  const failed = async (error: unknown): Promise<RunState> => {
    const detail = error instanceof Error ? error.message : String(error)
    await endMarked(RUN_MARK, mark)
    const end = await ledger.endRun({ task, n, kind: "killed", detail }).catch(() => undefined)
    return end ?? { ...UNKNOWN_END, task, n, kind: "killed", detail }
  }

  return {
    view: () => ({
      ...{ task, title: taken.title, run: n, holder, isResumed },
      startedMs: current.startedMs,
      session: agent?.seen().session ?? "",
      steps: agent?.steps() ?? 0,
      compactions: current.live?.compactions ?? 0,
      tokens: agent?.seen().tokens ?? 0,
      last: current.live?.retry ? `waits for the provider: ${current.live.retry.message}` : (agent?.last() ?? ""),
      retry: current.live?.retry,
    }),
    stop: current.stop,
    ended: work().catch(failed),
  }
}
