import { createDeferred, withDeadline } from "../host/async.ts"
import type { Log } from "../host/log.ts"
import type { ProcessOutcome, RunProcess } from "../host/process.ts"
import { bundleRoot as ownBundleRoot } from "../host/project.ts"
import type { LedgerStatus } from "./ledger.ts"
import {
  createLedgerLocator,
  databasePath,
  embeddedLedger,
  isMissingLedger,
  type LedgerLocatorDeps,
  ownRuntime,
  toProgram,
} from "./locate.ts"

type Turn<T> =
  | { readonly kind: "ran"; readonly value: T }
  /** Earlier calls used up the deadline. */
  | { readonly kind: "busy" }
  /** The circuit is open: the program hung recently and is not called for now. */
  | { readonly kind: "open"; readonly forMs: number }

/** Runs one call at a time, with a circuit breaker for a program that hangs. */
type CallQueue = {
  /** Waits for its turn and runs the call; `remaining` gives the milliseconds left of the deadline. */
  take<T>(deadlineMs: number, call: (remaining: () => number) => Promise<T>): Promise<Turn<T>>
  /** Pauses calls after the program hung, longer each time. @returns the milliseconds of the pause */
  open(): number
  /** Ends the pauses after the program answered. */
  close(): void
}

export const FIRST_PAUSE_MS = 30_000
export const LONGEST_PAUSE_MS = 10 * 60_000
/** With less time left no call is started: it could only be killed midway. */
const LEAST_TIME_MS = 50

/** @param clock monotonic, in milliseconds */
export const createCallQueue = (clock: () => number = () => performance.now()): CallQueue => {
  let tail: Promise<void> = Promise.resolve()
  let openUntil = 0
  let pauses = 0
  const whileOpen = (): { kind: "open"; forMs: number } | undefined => {
    const forMs = openUntil - clock()
    return forMs > 0 ? { kind: "open", forMs } : undefined
  }
  return {
    take: async (deadlineMs, call) => {
      const before = whileOpen()
      if (before) return before
      const endsAt = clock() + deadlineMs
      const turn = tail
      const ended = createDeferred<void>()
      tail = turn.then(() => ended.promise)
      try {
        const came = await withDeadline(turn, deadlineMs)
        const remaining = () => Math.max(0, endsAt - clock())
        if (came.kind !== "done" || remaining() < LEAST_TIME_MS) return { kind: "busy" }
        return whileOpen() ?? { kind: "ran", value: await call(remaining) }
      } finally {
        ended.resolve()
      }
    },
    open: () => {
      const forMs = Math.min(FIRST_PAUSE_MS * 2 ** pauses, LONGEST_PAUSE_MS)
      pauses += 1
      openUntil = clock() + forMs
      return forMs
    },
    close: () => {
      pauses = 0
      openUntil = 0
    },
  }
}

/** `missingDatabase`: the path at which there is no ledger. */
export type LedgerAnswer =
  | Extract<ProcessOutcome, { kind: "exited" }>
  | { readonly kind: "unavailable"; readonly reason: string; readonly missingDatabase?: string }

/** Runs the ledger's program. No call throws; each has its deadline in milliseconds. */
export type LedgerRunner = {
  /** Runs the real prog or the embedded ledger, one call at a time. */
  run(args: readonly string[], deadlineMs: number): Promise<LedgerAnswer>
  /** Runs the embedded ledger, outside the queue: claims and other calls do not wait for each other. */
  runEmbedded(args: readonly string[], deadlineMs: number): Promise<LedgerAnswer>
  /** Tells whether the real prog is used. */
  isReal(): Promise<boolean>
  status(deadlineMs: number): Promise<LedgerStatus>
}

export type RunnerDeps = {
  readonly run: RunProcess
  /** The project's directory, in which the program runs. */
  readonly directory: string
  readonly log: Log
  /** Absolute path of `.opencode/baton`; by default the copy that has this file. */
  readonly bundleRoot?: string
  readonly env?: LedgerLocatorDeps["env"]
  readonly runtime?: LedgerLocatorDeps["runtime"]
  readonly queue?: CallQueue
}

/** A call with a shorter deadline that times out does not mean that the program hangs. */
const HUNG_AFTER_MS = 500
/** More than for other programs: tasks with long logs and lists of learnings are long. */
const MAX_OUTPUT_BYTES = 64 * 1024 * 1024

/** Creates the runner of one directory. Does nothing before its first call. */
export const createLedgerRunner = (deps: RunnerDeps): LedgerRunner => {
  const { run, directory, log, bundleRoot = ownBundleRoot, env = process.env, runtime = ownRuntime() } = deps
  const { queue = createCallQueue() } = deps
  const locator = createLedgerLocator({ log, bundleRoot, env, runtime })

  const hung = (what: string): LedgerAnswer => {
    const restMs = queue.open()
    log.warn("the ledger hung and is left alone for a while", { directory, what, restMs })
    return { kind: "unavailable", reason: `${what}; it is left alone for ${restMs / 1000} s` }
  }

  const runNow = async (args: readonly string[], remaining: () => number): Promise<LedgerAnswer> => {
    const located = await locator.locate()
    if (located.kind === "unavailable") return located
    const deadlineMs = Math.ceil(remaining())
    const outcome = await run([...located.command, ...args], {
      cwd: directory,
      deadlineMs,
      env: located.kind === "embedded" ? located.env : {},
      maxOutputBytes: MAX_OUTPUT_BYTES,
    })
    switch (outcome.kind) {
      case "exited": {
        queue.close()
        if (outcome.exitCode === 0 || !isMissingLedger(outcome.stderr)) return outcome
        const missingDatabase = databasePath(env)
        return { kind: "unavailable", reason: `its database is missing at ${missingDatabase}`, missingDatabase }
      }
      case "timed-out": {
        const what = `prog ${args[0]} did not end within ${deadlineMs} ms`
        return deadlineMs < HUNG_AFTER_MS ? { kind: "unavailable", reason: what } : hung(what)
      }
      case "not-started":
        locator.forget()
        return { kind: "unavailable", reason: outcome.cause }
    }
  }

  return {
    run: async (args, deadlineMs) => {
      const turn = await queue.take(deadlineMs, (remaining) => runNow(args, remaining))
      if (turn.kind === "ran") return turn.value
      if (turn.kind === "busy") return { kind: "unavailable", reason: `earlier calls took the whole ${deadlineMs} ms` }
      const reason = `prog hung before and is left alone for another ${Math.ceil(turn.forMs / 1000)} s`
      return { kind: "unavailable", reason }
    },
    runEmbedded: async (args, deadlineMs) => {
      const { command, env: childEnv } = embeddedLedger({ bundleRoot, runtime })
      const outcome = await run([...command, ...args], { cwd: directory, deadlineMs, env: childEnv })
      if (outcome.kind === "exited") return outcome
      const reason =
        outcome.kind === "timed-out" ? `prog ${args[0]} did not end within ${deadlineMs} ms` : outcome.cause
      return { kind: "unavailable", reason }
    },
    isReal: async () => (await locator.locate()).kind === "real",
    status: async (deadlineMs) => {
      const turn = await queue.take(deadlineMs, () => locator.locate())
      const program =
        turn.kind === "ran"
          ? toProgram(turn.value)
          : ({ kind: "unavailable", reason: `the ledger is ${turn.kind}` } as const)
      return { program, foreign: locator.foreign() }
    },
  }
}
