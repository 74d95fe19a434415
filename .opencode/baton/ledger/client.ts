import { access, readdir } from "node:fs/promises"
import { describeError, type Log } from "../host/log.ts"
import type { RunProcess } from "../host/process.ts"
import { bundleRoot as ownBundleRoot } from "../host/project.ts"
import type { StateFolder } from "../host/state.ts"
import { TextTooLongError, textLimit, toArgument, truncateBytes } from "./description.ts"
import {
  type CallOptions,
  type ClaimLedger,
  type Ledger,
  type LedgerLearning,
  type LedgerProgram,
  type LedgerWrite,
  parseClaimOf,
  parseLearningsJson,
  parseTaskJson,
  parseTaskList,
  type TaskClaim,
} from "./ledger.ts"
import {
  complaint,
  createLedgerLocator,
  databasePath,
  embeddedLedger,
  isMissingLedger,
  isUnknownTask,
  type LedgerLocatorDeps,
  ownRuntime,
  toProgram,
} from "./locate.ts"

type Turn<T> =
  | { readonly kind: "ran"; readonly value: T }
  /** Earlier calls used up the deadline. */
  | { readonly kind: "busy" }
  /** The program hung recently and is not called for now. */
  | { readonly kind: "resting"; readonly forMs: number }

/** Runs one call at a time. */
type CallQueue = {
  /** Waits for its turn and runs the call; `remaining` gives the milliseconds left of the deadline. */
  take<T>(deadlineMs: number, call: (remaining: () => number) => Promise<T>): Promise<Turn<T>>
  /** Pauses calls after the program hung, longer each time. @returns the milliseconds of the pause */
  open(): number
  /** Ends the pauses after the program answered. */
  close(): void
}

export const FIRST_REST_MS = 30_000
export const LONGEST_REST_MS = 10 * 60_000
/** With less time left no call is started: it could only be killed midway. */
const LEAST_TIME_MS = 50

const endsWithin = (promise: Promise<void>, ms: number): Promise<boolean> =>
  new Promise((resolve) => {
    const timer = setTimeout(() => resolve(false), ms)
    timer.unref()
    void promise.then(() => {
      clearTimeout(timer)
      resolve(true)
    })
  })

/** @param clock monotonic, in milliseconds */
export const createCallQueue = (clock: () => number = () => performance.now()): CallQueue => {
  let tail: Promise<void> = Promise.resolve()
  let restUntil = 0
  let rests = 0
  const resting = (): { kind: "resting"; forMs: number } | undefined => {
    const forMs = restUntil - clock()
    return forMs > 0 ? { kind: "resting", forMs } : undefined
  }
  return {
    take: async (deadlineMs, call) => {
      const before = resting()
      if (before) return before
      const endsAt = clock() + deadlineMs
      const turn = tail
      let leave = () => {}
      const left = new Promise<void>((resolve) => {
        leave = resolve
      })
      tail = turn.then(() => left)
      try {
        const came = await endsWithin(turn, deadlineMs)
        const remaining = () => Math.max(0, endsAt - clock())
        if (!came || remaining() < LEAST_TIME_MS) return { kind: "busy" }
        return resting() ?? { kind: "ran", value: await call(remaining) }
      } finally {
        leave()
      }
    },
    open: () => {
      const forMs = Math.min(FIRST_REST_MS * 2 ** rests, LONGEST_REST_MS)
      rests += 1
      restUntil = clock() + forMs
      return forMs
    },
    close: () => {
      rests = 0
      restUntil = 0
    },
  }
}

export type NewLearning = {
  /** prog's name of the project. */
  readonly project: string
  readonly summary: string
  readonly detail: string
  /** At least one. */
  readonly concepts: readonly string[]
  readonly files: readonly string[]
}

type LearningsRead =
  | { readonly kind: "found"; readonly learnings: readonly LedgerLearning[] }
  | { readonly kind: "unavailable"; readonly reason: string; readonly answered?: boolean }

/** Reads and writes learnings in the ledger. No call throws; each has its deadline. */
export type LearningLedger = {
  /** All of a project, including stale ones, newest first. Default deadline 2 s. */
  readLearnings(project: string, options?: CallOptions): Promise<LearningsRead>
  addLearning(learning: NewLearning): Promise<LedgerWrite>
  editLearning(id: string, detail: string): Promise<LedgerWrite>
  /** Marks it as stale: it is kept, but shown only when stale ones are requested. */
  retireLearning(id: string, reason: string): Promise<LedgerWrite>
}

type LedgerAnswer =
  | { readonly kind: "exited"; readonly exitCode: number; readonly stdout: string; readonly stderr: string }
  | { readonly kind: "unavailable"; readonly reason: string; readonly missingDatabase?: string }

type LearningCallDeps = {
  readonly read: (args: readonly string[], options: CallOptions | undefined) => Promise<LedgerAnswer>
  readonly write: (args: readonly string[]) => Promise<LedgerWrite>
}

export const createLearningCalls = ({ read, write }: LearningCallDeps): LearningLedger => ({
  readLearnings: async (project, options) => {
    const answer = await read(["context", "-p", project, "--summary", "--include-stale", "--json"], options)
    if (answer.kind === "unavailable") return answer
    if (answer.exitCode !== 0) {
      const reason = `prog context exited with ${answer.exitCode}: ${answer.stderr.trim().slice(0, 300)}`
      return { kind: "unavailable", reason, answered: true }
    }
    try {
      return { kind: "found", learnings: await parseLearningsJson(answer.stdout) }
    } catch (error) {
      return { kind: "unavailable", reason: `prog context printed no list: ${describeError(error)}`, answered: true }
    }
  },
  addLearning: ({ project, summary, detail, concepts, files }) => {
    const lists = [...concepts.flatMap((name) => ["-c", name]), ...files.flatMap((path) => ["-f", path])]
    return write(["learn", "-p", project, ...lists, "--detail", detail, "--", summary])
  },
  editLearning: (id, detail) => write(["learn", "edit", "--detail", detail, "--", id]),
  retireLearning: (id, reason) => write(["learn", "stale", "--reason", reason, "--", id]),
})

/** `prog claim` names the holder after these words. */
const HELD = /^Error: \S+ is claimed by (.+); 'prog release /m

type ClaimCallDeps = {
  /** Runs the embedded ledger. */
  readonly call: (args: readonly string[], options?: CallOptions) => Promise<LedgerAnswer>
  readonly log: Log
}

type ClaimCalls = ClaimLedger & {
  readClaim(id: string, options: CallOptions): Promise<TaskClaim | undefined>
}

const sessionFlags = (sessionIDs: readonly string[]): string[] => sessionIDs.flatMap((id) => ["--session", id])

const createClaimCalls = ({ call, log }: ClaimCallDeps): ClaimCalls => ({
  claimTask: async (id, sessionID, options) => {
    const args = ["claim", "--pid", String(process.pid), ...sessionFlags([sessionID]), "--", id]
    const answer = await call(args, options)
    if (answer.kind === "unavailable") return answer
    if (answer.exitCode === 0) return { kind: "claimed" }
    const summary = HELD.exec(answer.stderr)?.[1]
    if (summary !== undefined) return { kind: "held", summary }
    const reason = `prog claim exited with ${answer.exitCode}: ${complaint(answer.stderr)}`
    const isRefused = isUnknownTask(answer.stderr) || answer.stderr.includes(`'prog open ${id}'`)
    return { kind: isRefused ? "refused" : "unavailable", reason }
  },
  renewClaims: async (sessionIDs, options) => {
    const answer = await call(["claim", "--renew", ...sessionFlags(sessionIDs)], options)
    if (answer.kind === "exited" && answer.exitCode === 0) return answer.stdout.split("\n").filter((id) => id !== "")
    log.warn("claims are not renewed", { sessionIDs, reason: reasonOf(answer) })
    return undefined
  },
  releaseClaims: async (sessionIDs) => {
    const answer = await call(["release", ...sessionFlags(sessionIDs)])
    if (answer.kind === "exited" && answer.exitCode === 0) log.debug("claims are released", { sessionIDs })
    else log.warn("claims are not released: they end with the process", { sessionIDs, reason: reasonOf(answer) })
  },
  readClaim: async (id, options) => {
    const answer = await call(["claims", "--json"], options)
    try {
      if (answer.kind === "exited" && answer.exitCode === 0) return parseClaimOf(id, answer.stdout)
      log.debug("the claim is unknown", { id, reason: reasonOf(answer) })
    } catch (error) {
      log.warn("the claims are unreadable", { id, error: describeError(error) })
    }
    return undefined
  },
})

export type { Ledger, LedgerTask, LedgerWrite, TaskRead } from "./ledger.ts"

const READ_DEADLINE_MS = 2000
const WRITE_DEADLINE_MS = 5000
/** The task itself, which the real prog gives, does not wait longer for its claim. */
const CLAIM_DEADLINE_MS = 1000
/** A call with a shorter deadline that times out does not mean that the program hangs. */
const HUNG_AFTER_MS = 500
/** More than for other programs: tasks with long logs and lists of learnings are long. */
const MAX_OUTPUT_BYTES = 64 * 1024 * 1024
const FIRST_SIGNAL_EXIT_CODE = 128
export type LedgerDeps = {
  readonly run: RunProcess
  /** The project's directory, in which the program runs. */
  readonly directory: string
  readonly log: Log
  readonly state: Pick<StateFolder, "path" | "write">
  /** Absolute path of `.opencode/baton`; by default the copy that has this file. */
  readonly bundleRoot?: string
  readonly env?: LedgerLocatorDeps["env"]
  readonly runtime?: LedgerLocatorDeps["runtime"]
  readonly queue?: CallQueue
  readonly maxTextBytes?: number
}

const reasonOf = (answer: LedgerAnswer): string =>
  answer.kind === "unavailable" ? answer.reason : `exit code ${answer.exitCode}: ${complaint(answer.stderr)}`

/** Creates the ledger of one directory: the real prog or the embedded one. Does nothing before its first call. */
export const createLedger = (deps: LedgerDeps): Ledger => {
  const { run, directory, log, state, env = process.env, runtime = ownRuntime() } = deps
  const { bundleRoot = ownBundleRoot, maxTextBytes = textLimit(runtime.platform) } = deps
  const { queue = createCallQueue() } = deps
  const locator = createLedgerLocator({ log, bundleRoot, env, runtime })

  const hung = (what: string): LedgerAnswer => {
    const restMs = queue.open()
    log.warn("the ledger hung and is left alone for a while", { directory, what, restMs })
    return { kind: "unavailable", reason: `${what}; it is left alone for ${restMs / 1000} s` }
  }

  const runLedger = async (
    args: readonly string[],
    maxOutputBytes: number,
    remaining: () => number,
  ): Promise<LedgerAnswer> => {
    const located = await locator.locate()
    if (located.kind === "unavailable") return located
    const deadlineMs = Math.ceil(remaining())
    const childEnv = located.kind === "embedded" ? located.env : {}
    const outcome = await run([...located.command, ...args], {
      cwd: directory,
      deadlineMs,
      env: childEnv,
      maxOutputBytes,
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

  /** Not in the queue: a claim waits for no other call, and none waits for it. */
  const callEmbedded = async (args: readonly string[], { deadlineMs = WRITE_DEADLINE_MS }: CallOptions = {}) => {
    const { command, env: childEnv } = embeddedLedger({ bundleRoot, runtime })
    const outcome = await run([...command, ...args], { cwd: directory, deadlineMs, env: childEnv })
    if (outcome.kind === "exited") return outcome
    const reason = outcome.kind === "timed-out" ? `prog ${args[0]} did not end within ${deadlineMs} ms` : outcome.cause
    return { kind: "unavailable", reason } as const
  }
  const { readClaim, ...claims } = createClaimCalls({ call: callEmbedded, log })

  const call = async (args: readonly string[], deadlineMs: number, maxOutputBytes: number): Promise<LedgerAnswer> => {
    const turn = await queue.take(deadlineMs, (remaining) => runLedger(args, maxOutputBytes, remaining))
    if (turn.kind === "ran") return turn.value
    if (turn.kind === "busy") return { kind: "unavailable", reason: `earlier calls took the whole ${deadlineMs} ms` }
    return {
      kind: "unavailable",
      reason: `prog hung before and is left alone for another ${Math.ceil(turn.forMs / 1000)} s`,
    }
  }

  /** Sessions of this project have tasks of a ledger, so that one was there. */
  const hasTasks = async (): Promise<boolean> => (await readdir(state.path("tasks")).catch(() => [])).length > 0

  const write = async (args: readonly string[], deadlineMs = WRITE_DEADLINE_MS): Promise<LedgerWrite> => {
    const answer = await call(args, deadlineMs, MAX_OUTPUT_BYTES)
    if (answer.kind === "unavailable") return answer
    if (answer.exitCode === 0) return { kind: "written" }
    if (isUnknownTask(answer.stderr)) return { kind: "unknown" }
    const reason = `prog ${args[0]} exited with ${answer.exitCode}: ${complaint(answer.stderr)}`
    // The signal may have come after the work was done.
    return { kind: answer.exitCode >= FIRST_SIGNAL_EXIT_CODE ? "unavailable" : "refused", reason }
  }

  const shorten: Ledger["shorten"] = async (id, text, room = 0) => {
    const fitted = truncateBytes(id, text, maxTextBytes - room)
    if (fitted.kind === "whole") return fitted.text
    if (fitted.kind === "no-room") {
      throw new TextTooLongError(
        `a text for ${id} has ${maxTextBytes - room} of ${maxTextBytes} bytes left, which is too few`,
      )
    }
    const path = state.path("long-texts", fitted.file)
    const kept = await access(path).then(
      () => true,
      () => false,
    )
    if (!kept) await state.write(path, fitted.full)
    log.info("a text was too long for prog and is cut; the full text is kept", { id, path })
    return fitted.text
  }

  return {
    ...createLearningCalls({
      read: async (args, { deadlineMs = READ_DEADLINE_MS } = {}) => {
        const answer = await call(args, deadlineMs, MAX_OUTPUT_BYTES)
        if (answer.kind === "exited" || answer.missingDatabase === undefined || (await hasTasks())) return answer
        // No ledger yet: the first learning makes it.
        return { kind: "exited", exitCode: 0, stdout: "[]", stderr: "" }
      },
      write: (args) => write(args),
    }),
    ...claims,
    shorten,
    readTask: async (id, { deadlineMs = READ_DEADLINE_MS, withClaim = false } = {}) => {
      const isReal = withClaim && (await locator.locate()).kind === "real"
      const claim = isReal ? readClaim(id, { deadlineMs: CLAIM_DEADLINE_MS }) : undefined
      const answer = await call(["show", "--json", "--", id], deadlineMs, MAX_OUTPUT_BYTES)
      if (answer.kind === "unavailable") return answer
      if (answer.exitCode !== 0) {
        if (isUnknownTask(answer.stderr)) return { kind: "unknown" }
        const reason = `prog show exited with ${answer.exitCode}: ${complaint(answer.stderr)}`
        return { kind: "unavailable", reason, answered: true }
      }
      try {
        const [task, read] = [parseTaskJson(answer.stdout), await claim]
        return { kind: "found", task: read === undefined ? task : { ...task, claim: read } }
      } catch (error) {
        const received = JSON.stringify(answer.stdout.slice(0, 80))
        const reason = `prog show printed ${received}, no task: ${describeError(error)}`
        return { kind: "unavailable", reason, answered: true }
      }
    },
    listTasks: async ({ deadlineMs = READ_DEADLINE_MS } = {}) => {
      const answer = await call(["list", "--json"], deadlineMs, MAX_OUTPUT_BYTES)
      const reason = answer.kind === "unavailable" ? answer.reason : `prog list exited with ${answer.exitCode}`
      if (answer.kind !== "unavailable" && answer.exitCode === 0) {
        try {
          return parseTaskList(answer.stdout)
        } catch (error) {
          log.warn("the list of tasks is unreadable", { error: describeError(error) })
          return undefined
        }
      }
      log.warn("the tasks could not be listed", { reason })
      return undefined
    },
    appendLog: async (id, message, { deadlineMs } = {}) => {
      try {
        return await write(["log", "--", id, await shorten(id, message)], deadlineMs)
      } catch (error) {
        return { kind: "unavailable", reason: `the full text could not be kept: ${describeError(error)}` }
      }
    },
    replaceDescription: async (id, description, { deadlineMs } = {}) => {
      const text = toArgument(description)
      const size = Buffer.byteLength(text)
      if (size <= maxTextBytes) return await write(["desc", "--", id, text], deadlineMs)
      return { kind: "refused", reason: `a description of ${size} bytes is over the ${maxTextBytes} prog can receive` }
    },
    status: async ({ deadlineMs = READ_DEADLINE_MS } = {}) => {
      const turn = await queue.take(deadlineMs, () => locator.locate())
      const program: LedgerProgram =
        turn.kind === "ran" ? toProgram(turn.value) : { kind: "unavailable", reason: `the ledger is ${turn.kind}` }
      return { program, foreign: locator.foreign() }
    },
  }
}
