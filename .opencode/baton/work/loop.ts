import { createBreaker } from "./breaker.ts"
import type { NewWorker, Queue, RunState, WorkLedger } from "./ledger.ts"
import { nextClock, type WorkOptions } from "./options.ts"
import { type RunDeps, type RunEvent, type RunningTask, startRun } from "./run.ts"

// Takes tasks and runs agents on them until there is nothing left to do, or something says stop.

export const EXIT = { over: 0, failed: 1, breaker: 2, limit: 3, stopped: 130 } as const

export type WorkEvent =
  | { readonly event: "info"; readonly text: string }
  | ({ readonly event: "ended"; readonly title: string; readonly ms: number } & RunState)
  | RunEvent
  | { readonly event: "state"; readonly state: State; readonly reason: string }

type State = "working" | "paused" | "draining" | "waiting"

export type LoopDeps = {
  readonly options: WorkOptions
  readonly ledger: WorkLedger
  readonly project: string
  readonly worker: Pick<NewWorker, "id" | "project" | "directory" | "slots">
  /** Starts a run for a slot. */
  readonly runDeps: (slot: number) => Omit<RunDeps, "isRunning">
  /** Asks the model once. @returns what is wrong */
  readonly probe: () => Promise<string | undefined>
  readonly tell: (event: WorkEvent) => void
  readonly nowMs: () => number
}

const BEAT_MS = 5_000
/** For tasks that others add or finish. */
const LOOK_MS = 15_000
/** A ledger that does not answer for so long has no claim of this worker any more. */
const LEDGER_AWAY_MS = 5 * 60_000

export type Loop = ReturnType<typeof createLoop>

export const createLoop = (deps: LoopDeps) => {
  const { options, ledger, project, worker, runDeps, probe, tell, nowMs } = deps
  const running = new Map<number, RunningTask>()
  const breaker = createBreaker(nowMs)
  let state: State = "working"
  let reason = ""
  let exitCode: number = EXIT.over
  let spent = 0
  let left = options.once ? options.slots : Number.POSITIVE_INFINITY
  /** The time that the provider named, until it answers again. */
  let waitUntil = 0
  /** The reason for which all agents are stopped. */
  let stopping: string | undefined
  /** The first of the ledger's failures in a row. */
  let failingMs: number | undefined
  let wake = (): void => {}
  let queue: Queue | undefined

  const setState = (next: State, why: string): void => {
    if (state === next) return
    state = next
    reason = why
    tell({ event: "state", state, reason })
    wake()
  }

  /** Takes no further task. */
  const drain = (why: string, code: number): void => {
    if (exitCode === EXIT.over) exitCode = code
    setState("draining", why)
  }

  const stopAll = async (detail: string): Promise<void> => {
    await Promise.all([...running.values()].map((one) => one.stop({ kind: "stopped", detail })))
  }

  const stop = (why: string): void => {
    if (stopping !== undefined) return
    stopping = why
    exitCode = EXIT.stopped
    setState("draining", why)
    void stopAll(why)
  }

  const rest = (ms: number): Promise<void> =>
    new Promise((resolve) => {
      const timer = setTimeout(resolve, ms)
      wake = () => {
        clearTimeout(timer)
        resolve()
      }
    })

  const judge = (end: RunState): void => {
    const verdict = breaker.add(end)
    if (verdict.kind === "stop") drain(verdict.reason, EXIT.breaker)
    if (verdict.kind !== "wait" || state === "draining") return
    waitUntil = Date.parse(verdict.until)
    if (state !== "paused") setState("waiting", `${verdict.reason}; the provider asks to wait until ${verdict.until}`)
  }

  const begin = (slot: number, task: RunningTask): void => {
    running.set(slot, task)
    const { title, startedMs } = task.view()
    void task.ended.then((end) => {
      running.delete(slot)
      spent += end.tokens
      tell({ event: "ended", title, ms: nowMs() - startedMs, ...end })
      judge(end)
      wake()
    })
    // It was being taken when the work was stopped.
    if (stopping !== undefined) void task.stop({ kind: "stopped", detail: stopping })
  }

  const isRunning = (task: string): boolean => [...running.values()].some((one) => one.view().task === task)

  const freeSlot = (): number | undefined => {
    for (let slot = 1; slot <= options.slots; slot++) if (!running.has(slot)) return slot
    return undefined
  }

  /** Takes tasks for the free slots. @returns whether the queue had one for each */
  const fill = async (): Promise<boolean> => {
    for (let slot = freeSlot(); slot !== undefined && left > 0; slot = freeSlot()) {
      const forRun = { ...runDeps(slot), isRunning }
      const taken = await ledger.claimNext(project, forRun.holder, options)
      if (!taken) return false
      left--
      begin(slot, startRun(taken, forRun))
      if (state !== "working") return true
    }
    return true
  }

  /** Waits where something may still become ready. @returns false when there is nothing to wait for */
  const awaitTasks = async (): Promise<boolean> => {
    queue = await ledger.queue(project)
    if (running.size > 0 || queue.ready > 0) {
      await rest(LOOK_MS)
      return true
    }
    if (queue.later > 0) {
      await rest(Math.min(Math.max(Date.parse(queue.next) - nowMs(), 0) + 100, LOOK_MS))
      return true
    }
    // Others may finish what the rest waits for.
    if (queue.waiting === 0 || queue.at_work === 0) return false
    await rest(LOOK_MS)
    return true
  }

  /** Takes tasks or waits for some, also for a ledger that fails for a while. @returns false when there is nothing to wait for */
  const takeTasks = async (): Promise<boolean> => {
    try {
      const goesOn = (await fill()) || (await awaitTasks())
      failingMs = undefined
      return goesOn
    } catch (error) {
      failingMs ??= nowMs()
      if (nowMs() - failingMs > LEDGER_AWAY_MS) throw error
      tell({ event: "info", text: `the ledger: ${String(error)}` })
      await rest(LOOK_MS)
      return true
    }
  }

  const askAgain = async (): Promise<void> => {
    await rest(Math.max(0, Math.min(waitUntil - nowMs(), LOOK_MS)))
    if (state !== "waiting" || nowMs() < waitUntil) return
    const wrong = await probe()
    if (state !== "waiting") return
    if (wrong !== undefined) return drain(`the model still does not answer: ${wrong}`, EXIT.breaker)
    breaker.reset()
    waitUntil = 0
    setState("working", "the model answers again")
  }

  const spentNow = (): number => [...running.values()].reduce((sum, one) => sum + one.view().tokens, spent)

  const heed = (wanted: string): void => {
    if (wanted === "stopped") stop("it was stopped by `baton work stop`")
    if (wanted === "draining") drain("it drains by `baton work drain`", EXIT.over)
    if (wanted === "paused" && state !== "draining") setState("paused", "by `baton work pause`")
    // The provider may still have to be waited for.
    if (wanted === "active" && state === "paused")
      setState(waitUntil === 0 ? "working" : "waiting", "by `baton work resume`")
  }

  const beat = async (): Promise<void> => {
    const views = [...running].map(([slot, one]) => ({ slot, one, view: one.view() }))
    const names = views.map(({ view }) => ({ task: view.task, n: view.run }))
    const { wanted, runs } = await ledger.beat({ ...worker, state, note: reason }, names)
    heed(wanted)
    for (const run of runs) {
      const own = views.find(({ view }) => view.task === run.task && view.run === run.n)
      // A run that its plugin has ended comes to its end by itself; a task that was closed by its agent, too.
      if (!own || run.held || run.ended !== "" || run.status === "done" || run.status === "reviewing") continue
      const why = run.status === "canceled" ? "the task was canceled" : "the task is another's, or was opened by hand"
      await own.one.stop({ kind: "stopped", detail: why })
    }
  }

  const limits = (): void => {
    if (options.budget === undefined || spentNow() < options.budget || stopping !== undefined) return
    stopping = "the budget is spent"
    drain(`the budget of ${options.budget} tokens is spent`, EXIT.limit)
    void stopAll(stopping)
  }

  const untilMs = options.until === undefined ? undefined : nextClock(options.until, nowMs())

  const timers = (): (() => void) => {
    let isBeating = false
    const tick = setInterval(() => {
      limits()
      if (untilMs !== undefined && nowMs() >= untilMs) drain("the time is over", EXIT.limit)
    }, 1_000)
    const beats = setInterval(() => {
      if (isBeating) return
      isBeating = true
      beat()
        // The lease is long enough to try again.
        .catch((error: unknown) => tell({ event: "info", text: `the ledger: ${String(error)}` }))
        .finally(() => {
          isBeating = false
        })
    }, BEAT_MS)
    return () => {
      clearInterval(tick)
      clearInterval(beats)
    }
  }

  return {
    views: () => [...running.values()].map((one) => one.view()),
    state: () => ({ state, reason, spent: spentNow(), queue }),
    /** Takes no further task, or with the second call ends the agents. */
    interrupt: (): void => {
      if (state === "draining") stop("it was interrupted")
      else drain("it drains: agents come to their end; once more stops them", EXIT.stopped)
    },
    stop,
    /** Reads the queue again, for the table. */
    lookAtQueue: async (): Promise<void> => {
      queue = await ledger.queue(project)
    },
    /** Works until there is nothing left to do. @returns the exit code */
    run: async (): Promise<number> => {
      const end = timers()
      try {
        await beat()
        for (;;) {
          if (state === "draining" || left <= 0) {
            if (running.size === 0) break
            await rest(LOOK_MS)
          } else if (state === "waiting") await askAgain()
          else if (state === "paused") await rest(LOOK_MS)
          else if (freeSlot() === undefined) await rest(LOOK_MS)
          else if (!(await takeTasks())) break
        }
        return exitCode
      } catch (error) {
        const ends = [...running.values()].map((one) => one.ended)
        await stopAll("the ledger does not answer")
        await Promise.all(ends)
        throw error
      } finally {
        end()
        await ledger.beat({ ...worker, state: "ended", note: "" }, []).catch(() => undefined)
      }
    },
  }
}
