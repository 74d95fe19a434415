import { createReadStream, statSync } from "node:fs"
import { readFile } from "node:fs/promises"
import { homedir } from "node:os"
import { join } from "node:path"
import { createDeferred, withDeadline } from "../host/async.ts"
import { describeError, type Log } from "../host/log.ts"
import {
  type Argv,
  aloneInBun,
  findExecutables,
  type ProcessOutcome,
  type RunProcess,
  runProgramSync,
} from "../host/process.ts"
import { bundleRoot as ownBundleRoot } from "../host/project.ts"
import { cutText } from "../host/text.ts"
import type { ForeignProgram, LedgerProgram, LedgerStatus } from "./ledger.ts"

type LocatedLedger =
  /** `isScript`: a script around prog, which may name a database of its own. */
  | { readonly kind: "real"; readonly path: string; readonly command: Argv; readonly isScript: boolean }
  | {
      readonly kind: "embedded"
      readonly path: string
      readonly command: Argv
      readonly env: Readonly<Record<string, string>>
    }
  | { readonly kind: "unavailable"; readonly reason: string }

type LedgerLocatorDeps = {
  readonly log: Log
  /** Absolute path of `.opencode/baton`. */
  readonly bundleRoot: string
  /** PATH is searched; BATON_LEDGER (`real` or `embedded`) forces one of the two. */
  readonly env: Readonly<Record<string, string | undefined>>
  readonly runtime: { readonly execPath: string; readonly isBun: boolean; readonly platform: NodeJS.Platform }
}

/** The ledger's database, for prog and the embedded ledger alike. */
export const databasePath = (env: LedgerLocatorDeps["env"], home = env.HOME || homedir()): string =>
  env.PROG_DB || join(home, ".prog", "prog.db")

/** Changes with each write to the database; undefined when there is none. @throws the file system's own error */
export const stampOf = (database: string): string | undefined => {
  const [main, changes] = [database, `${database}-wal`].map((path) => {
    const { mtimeMs = 0, size = 0 } = statSync(path, { throwIfNoEntry: false }) ?? {}
    return size > 0 ? `${mtimeMs}-${size}` : ""
  })
  return main === "" ? undefined : `${main} ${changes}`
}

/** The start of a learning's id, which SQLite stores as it is. */
const LEARNING_MARK = "lrn-"
/** Read in some milliseconds; a larger database is not searched. */
const MAX_SEARCHED_BYTES = 16 * 1024 * 1024

/** @throws the file system's own error */
const searchLearnings = async (database: string): Promise<boolean> => {
  // The log of changes first: what moves from it into the database meanwhile is then found there.
  for (const path of [`${database}-wal`, database]) {
    const size = statSync(path, { throwIfNoEntry: false })?.size ?? 0
    if (size > MAX_SEARCHED_BYTES) return true
    if (size > 0 && (await readFile(path)).includes(LEARNING_MARK)) return true
  }
  return false
}

/** The second line of bin/prog, in every copy of it. */
const LAUNCHER_MARK = "\n# baton-ledger-launcher\n"
const MARKED_BYTES = 200
/**
 * A Go program contains the name of its module; a wrapper script for another database contains PROG_DB. bin/prog uses the
 * same rule, so that the agent's `prog` and Baton's calls use one ledger. No unknown program is run to find out.
 */
const LEDGER_MARKS = ["github.com/baiirun/prog", "PROG_DB"]
const LONGEST_MARK = Math.max(...LEDGER_MARKS.map((mark) => mark.length))
const CHUNK_BYTES = 1024 * 1024

/** Identifies a program called prog by its content. @throws the file system's error */
const recognise = async (path: string): Promise<"launcher" | "ledger" | "script" | "foreign"> => {
  let kind: "ledger" | "script" | undefined
  let seen = Buffer.alloc(0)
  for await (const chunk of createReadStream(path, { highWaterMark: CHUNK_BYTES })) {
    // A mark may cross the boundary.
    seen = Buffer.concat([seen.subarray(-LONGEST_MARK), chunk])
    if (kind === undefined) {
      const start = seen.toString("latin1", 0, MARKED_BYTES)
      if (start.includes(LAUNCHER_MARK)) return "launcher"
      kind = start.startsWith("#!") ? "script" : "ledger"
    }
    if (LEDGER_MARKS.some((mark) => seen.includes(mark))) return kind
  }
  return "foreign"
}

const recogniseProgram = async (
  path: string,
): Promise<"launcher" | "ledger" | "script" | { readonly foreign: string }> => {
  try {
    const kind = await recognise(path)
    return kind === "foreign" ? { foreign: `it names neither ${LEDGER_MARKS.join(" nor ")}` } : kind
  } catch (error) {
    return { foreign: `it cannot be read: ${describeError(error)}` }
  }
}

/** The embedded ledger: run by the host's own binary on Bun, elsewhere by the launcher, which looks for a runtime. */
const embeddedLedger = ({
  bundleRoot,
  runtime,
}: Pick<LedgerLocatorDeps, "bundleRoot" | "runtime">): Extract<LocatedLedger, { kind: "embedded" }> => {
  const main = join(bundleRoot, "ledger", "embedded", "main.ts")
  const launcher = join(bundleRoot, "bin", "prog")
  const env = { BATON_PID: String(process.pid) }
  if (!runtime.isBun) {
    return { kind: "embedded", path: launcher, command: [launcher], env: { ...env, BATON_LEDGER: "embedded" } }
  }
  const command: Argv = [runtime.execPath, ...aloneInBun(runtime.platform), "run", "--no-install", main]
  return { kind: "embedded", path: main, command, env: { ...env, BUN_BE_BUN: "1" } }
}

/** Finds the ledger program: a real prog on PATH, else the embedded one. Runs nothing. */
const createLedgerLocator = (deps: LedgerLocatorDeps) => {
  const { log, env, runtime } = deps
  const foreign = new Map<string, ForeignProgram>()
  let known: Promise<LocatedLedger> | undefined

  const search = async (): Promise<LocatedLedger> => {
    const forced = env.BATON_LEDGER
    if (forced === "embedded") return embeddedLedger(deps)
    for (const path of findExecutables(runtime.platform === "win32" ? "prog.exe" : "prog", env.PATH)) {
      const found = await recogniseProgram(path)
      if (found === "launcher") continue
      if (typeof found === "string") return { kind: "real", path, command: [path], isScript: found === "script" }
      if (foreign.has(path)) continue
      foreign.set(path, { path, reason: found.foreign })
      log.warn("a program called prog is not the ledger and is not used", { path, reason: found.foreign })
    }
    if (forced !== "real") return embeddedLedger(deps)
    return { kind: "unavailable", reason: "BATON_LEDGER asks for the real prog and PATH has none" }
  }

  return {
    /** Finds the program at the first call and caches it; an unavailable one is searched for again. */
    locate: async (): Promise<LocatedLedger> => {
      const isFirst = known === undefined
      known ??= search()
      const located = await known
      if (located.kind === "unavailable") known = undefined
      else if (isFirst) log.debug("ledger program", { kind: located.kind, path: located.path })
      return located
    },
    /** Drops the cached program, for example after it was removed. */
    forget: (): void => {
      known = undefined
    },
    foreign: (): readonly ForeignProgram[] => [...foreign.values()],
  }
}

export const ownRuntime = (): LedgerLocatorDeps["runtime"] => ({
  execPath: process.execPath,
  isBun: process.versions.bun !== undefined,
  platform: process.platform,
})

export const isUnknownTask = (stderr: string): boolean => /item not found:|FOREIGN KEY constraint failed/.test(stderr)

/** The embedded ledger's refusal, and prog's for the file without tables that it has just made. */
const isMissingLedger = (stderr: string): boolean =>
  /^Error: (?:failed to open database .*: no ledger is there|migration failed: .*no such table: items)/m.test(stderr)

export const complaint = (stderr: string): string =>
  cutText(/^Error: (.+)$/m.exec(stderr)?.[1] ?? stderr.trim().split("\n")[0] ?? "", 300)

const toProgram = (located: LocatedLedger): LedgerProgram =>
  located.kind === "unavailable" ? located : { kind: located.kind, path: located.path }

type Turn<T> =
  | { readonly kind: "ran"; readonly value: T }
  /** Earlier calls used up the deadline. */
  | { readonly kind: "busy" }
  /** The circuit is open: the program hung recently and is not called for now. */
  | { readonly kind: "open"; readonly forMs: number }

export const FIRST_PAUSE_MS = 30_000
export const LONGEST_PAUSE_MS = 10 * 60_000
/** With less time left no call is started: it could only be killed midway. */
const LEAST_TIME_MS = 50

/** Runs one call at a time, with a circuit breaker for a program that hangs. @param clock monotonic, in milliseconds */
export const createCallQueue = (clock: () => number = () => performance.now()) => {
  let tail: Promise<void> = Promise.resolve()
  let openUntil = 0
  let pauses = 0
  const whileOpen = (): { kind: "open"; forMs: number } | undefined => {
    const forMs = openUntil - clock()
    return forMs > 0 ? { kind: "open", forMs } : undefined
  }
  return {
    /** Waits for its turn and runs the call; `remaining` gives the milliseconds left of the deadline. */
    take: async <T>(deadlineMs: number, call: (remaining: () => number) => Promise<T>): Promise<Turn<T>> => {
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
    /** Pauses calls after the program hung, longer each time. @returns the milliseconds of the pause */
    open: (): number => {
      const forMs = Math.min(FIRST_PAUSE_MS * 2 ** pauses, LONGEST_PAUSE_MS)
      pauses += 1
      openUntil = clock() + forMs
      return forMs
    },
    /** Ends the pauses after the program answered. */
    close: (): void => {
      pauses = 0
      openUntil = 0
    },
  }
}

/** `missingDatabase`: the path at which there is no ledger. */
export type LedgerAnswer =
  | Extract<ProcessOutcome, { kind: "exited" }>
  | { readonly kind: "unavailable"; readonly reason: string; readonly missingDatabase?: string }

export type RunnerDeps = {
  readonly run: RunProcess
  /** The project's directory, in which the program runs. */
  readonly directory: string
  readonly log: Log
  /** Absolute path of `.opencode/baton`; by default the copy that has this file. */
  readonly bundleRoot?: string
  readonly env?: LedgerLocatorDeps["env"]
  readonly runtime?: LedgerLocatorDeps["runtime"]
  readonly queue?: ReturnType<typeof createCallQueue>
}

/** A call with a shorter deadline that times out does not mean that the program hangs: on a busy machine it may not have begun. */
const HUNG_AFTER_MS = 1_500
/** More than for other programs: tasks with long logs and lists of learnings are long. */
const MAX_OUTPUT_BYTES = 64 * 1024 * 1024

/** Creates what runs the ledger's program in one directory. Does nothing before its first call; none throws. */
export const createLedgerRunner = (deps: RunnerDeps) => {
  const { run, directory, log, bundleRoot = ownBundleRoot, env = process.env, runtime = ownRuntime() } = deps
  const { queue = createCallQueue() } = deps
  const locator = createLedgerLocator({ log, bundleRoot, env, runtime })

  const timedOut = (what: string): LedgerAnswer => {
    const retryInMs = queue.open()
    log.warn("the ledger timed out: no calls for a while", { directory, what, retryInMs })
    return { kind: "unavailable", reason: `${what}; no calls for ${retryInMs / 1000} s` }
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
        return deadlineMs < HUNG_AFTER_MS ? { kind: "unavailable", reason: what } : timedOut(what)
      }
      case "not-started":
        locator.forget()
        return { kind: "unavailable", reason: outcome.cause }
    }
  }

  let searched: { readonly stamp: string; readonly found: boolean } | undefined
  const mayHaveLearnings = async (): Promise<boolean> => {
    const located = await locator.locate()
    if (located.kind === "real" && located.isScript) return true
    const database = databasePath(env)
    const stamp = stampOf(database)
    if (stamp === undefined) return false
    if (searched?.stamp !== stamp) searched = { stamp, found: await searchLearnings(database) }
    return searched.found
  }

  return {
    /** False when the database holds no learning of any project: no program is run to find out. */
    mayHaveLearnings: (): Promise<boolean> =>
      mayHaveLearnings().catch((error: unknown) => {
        log.warn("whether the ledger has learnings is not known", { error: describeError(error) })
        return true
      }),
    /** Runs the real prog or the embedded ledger, one call at a time. */
    run: async (args: readonly string[], deadlineMs: number): Promise<LedgerAnswer> => {
      const turn = await queue.take(deadlineMs, (remaining) => runNow(args, remaining))
      if (turn.kind === "ran") return turn.value
      if (turn.kind === "busy") return { kind: "unavailable", reason: `earlier calls took the whole ${deadlineMs} ms` }
      const reason = `prog timed out before: no calls for another ${Math.ceil(turn.forMs / 1000)} s`
      return { kind: "unavailable", reason }
    },
    /** Runs the embedded ledger, outside the queue: claims and other calls do not wait for each other. */
    runEmbedded: async (args: readonly string[], deadlineMs: number): Promise<LedgerAnswer> => {
      const { command, env: childEnv } = embeddedLedger({ bundleRoot, runtime })
      const outcome = await run([...command, ...args], { cwd: directory, deadlineMs, env: childEnv })
      if (outcome.kind === "exited") return outcome
      const reason =
        outcome.kind === "timed-out" ? `prog ${args[0]} did not end within ${deadlineMs} ms` : outcome.cause
      return { kind: "unavailable", reason }
    },
    /** The same before it returns, for the end of a process. */
    runEmbeddedNow: (args: readonly string[], deadlineMs: number): LedgerAnswer => {
      const { command, env: childEnv } = embeddedLedger({ bundleRoot, runtime })
      const outcome = runProgramSync([...command, ...args], { cwd: directory, deadlineMs, env: childEnv })
      if (outcome.kind === "exited") return outcome
      const reason =
        outcome.kind === "timed-out" ? `prog ${args[0]} did not end within ${deadlineMs} ms` : outcome.cause
      return { kind: "unavailable", reason }
    },
    isReal: async (): Promise<boolean> => (await locator.locate()).kind === "real",
    status: async (): Promise<LedgerStatus> => ({
      program: toProgram(await locator.locate()),
      foreign: locator.foreign(),
    }),
  }
}

export type LedgerRunner = ReturnType<typeof createLedgerRunner>
