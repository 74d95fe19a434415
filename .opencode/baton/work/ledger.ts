import { SILENT } from "../host/log.ts"
import { createProcessRunner } from "../host/process.ts"
import type { RunRow, WorkerRow } from "../ledger/embedded/store.ts"
import { complaint, createLedgerRunner } from "../ledger/runner.ts"

// What workers ask of the ledger, by the embedded `prog`: the queue's own commands are there alone.

/** A run with its task. */
export type ReportedRun = RunRow & { readonly project: string; readonly title: string; readonly status: string }

/** A task that a worker has taken. */
export type Taken = {
  readonly task: string
  readonly title: string
  readonly definition_of_done: string
  /** The number of the run that begins. */
  readonly run: number
  /** The runs before it, at most three, the newest last. */
  readonly earlier: readonly RunRow[]
  /** A person's answer to the last question; "" for none. */
  readonly answer: string
}

/** The end of a run as the ledger has it; `ended` is "" for one that goes on. */
export type RunState = {
  readonly task: string
  readonly n: number
  readonly session: string
  readonly ended: string
  readonly kind: string
  readonly detail: string
  readonly next_try: string
  readonly tokens: number
  readonly status: string
}

export type Queue = {
  readonly ready: number
  /** Ready, but not handed out before `next`. */
  readonly later: number
  readonly next: string
  /** Open and waiting for other tasks. */
  readonly waiting: number
  /** In progress under a worker's run. */
  readonly at_work: number
  readonly counts: Readonly<Record<string, number>>
  readonly blocked: readonly { readonly task: string; readonly title: string; readonly reason: string }[]
  /** The open ones, also those that wait for others. */
  readonly tasks: readonly QueuedTask[]
  /** Those in progress, blocked or reviewed, whose next run may come. */
  readonly begun: readonly QueuedTask[]
}

type QueuedTask = { readonly task: string; readonly title: string; readonly definition_of_done: string | null }

export type Worker = WorkerRow & {
  readonly alive: boolean
  /** It runs, or ran, on this host. */
  readonly own: boolean
}

export type NewWorker = Pick<Worker, "id" | "project" | "directory" | "slots"> & {
  readonly state: string
  readonly note: string
}

export type RunName = { readonly task: string; readonly n: number }

export type EndedRun = RunName & {
  readonly kind: string
  readonly detail: string
  readonly next_try?: string
  readonly tools?: number
  readonly tokens?: number
  readonly cost?: number
  readonly branch?: string
}

const DEADLINE_MS = 30_000

export type WorkLedger = ReturnType<typeof openWorkLedger>

/** @param directory in which `prog` runs */
export const openWorkLedger = (directory: string) => {
  const runner = createLedgerRunner({ run: createProcessRunner({ shell: undefined }), directory, log: SILENT })

  const call = async (args: readonly string[]): Promise<string> => {
    const answer = await runner.runEmbedded(args, DEADLINE_MS)
    if (answer.kind === "unavailable") throw new Error(`the ledger does not answer: ${answer.reason}`)
    if (answer.exitCode !== 0) throw new Error(complaint(answer.stderr))
    return answer.stdout
  }
  const json = async <Shape>(...args: string[]): Promise<Shape> => JSON.parse(await call(args))

  return {
    /** Takes the next task for a worker. @returns undefined when none is ready and free */
    claimNext: async (
      project: string,
      worker: string,
      { attempts, backoffMs }: { attempts: number; backoffMs: number },
    ): Promise<Taken | undefined> => {
      const limits = ["--attempts", String(attempts), "--backoff", String(Math.round(backoffMs / 1_000))]
      const own = ["--as", worker, "--pid", String(process.pid)]
      const answer = await runner.runEmbedded(
        ["claim", "--next", "-p", project, ...own, ...limits, "--json"],
        DEADLINE_MS,
      )
      if (answer.kind === "unavailable") throw new Error(`the ledger does not answer: ${answer.reason}`)
      if (answer.exitCode === 0) return JSON.parse(answer.stdout)
      if (answer.stderr.includes("is ready and free")) return undefined
      throw new Error(complaint(answer.stderr))
    },
    /** Ends a run, unless the plugin has ended it. */
    endRun: async (end: EndedRun): Promise<RunState | undefined> =>
      (await json<RunState[]>("run-end", "--", JSON.stringify([end])))[0],
    beat: (worker: NewWorker, runs: readonly RunName[]) =>
      json<{ wanted: string; runs: (RunState & { held: boolean })[] }>(
        "worker-beat",
        "--",
        JSON.stringify({ ...worker, pid: process.pid, runs }),
      ),
    queue: (project: string) => json<Queue>("queue", "-p", project, "--json"),
    runs: (project: string, since: string) => json<ReportedRun[]>("runs", "-p", project, "--since", since, "--json"),
    workers: (project: string) => json<Worker[]>("workers", "-p", project, "--json"),
    /** @returns the workers that were told */
    want: (wanted: string, project: string) => json<Worker[]>("worker-want", wanted, "-p", project, "--json"),
    log: (task: string, message: string) => call(["log", "--", task, message]),
    show: (task: string) =>
      json<{ title: string; status: string; dependencies: string[]; definition_of_done: string | null }>(
        "show",
        "--json",
        "--",
        task,
      ),
    /** Writes and takes back, to see that the ledger can be written. */
    touch: (worker: NewWorker) =>
      json<unknown>("worker-beat", "--", JSON.stringify({ ...worker, pid: process.pid, runs: [] })),
  }
}
