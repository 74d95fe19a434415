import { access } from "node:fs/promises"
import { dirname } from "node:path"
import { fileURLToPath } from "node:url"
import { describeError, type Log } from "../host/log.ts"
import type { RunProcess } from "../host/process.ts"
import type { StateFolder } from "../host/state.ts"
import { type CallQueue, createCallQueue } from "./call-queue.ts"
import { createLearningCalls, type LedgerAnswer } from "./learning-calls.ts"
import type { CallOptions, Ledger, LedgerProgram, LedgerWrite } from "./ledger.ts"
import { createLedgerLocator, type LedgerLocatorDeps, type LocatedLedger } from "./locate.ts"
import { parseTaskJson, parseTaskList } from "./task-json.ts"
import { fitText, NoRoomError, textLimit, toSendable } from "./text-limit.ts"

export type { Ledger, LedgerTask, LedgerWrite, TaskRead } from "./ledger.ts"

const READ_DEADLINE_MS = 2000
const WRITE_DEADLINE_MS = 5000
/** A call that was given less than this and not heard of again says nothing about the program. */
const HUNG_AFTER_MS = 500
/** A task with a long log and a list of learnings are longer than what other programs print. */
const MAX_OUTPUT_BYTES = 64 * 1024 * 1024
const FIRST_SIGNAL_EXIT_CODE = 128

export type LedgerDeps = {
  readonly run: RunProcess
  /** The project's directory: where the program runs, and what calls are queued by. */
  readonly directory: string
  readonly log: Log
  readonly state: Pick<StateFolder, "path" | "write">
  /** Absolute path of `.opencode/baton`; by default the copy this file belongs to. */
  readonly bundleRoot?: string
  readonly env?: LedgerLocatorDeps["env"]
  readonly runtime?: LedgerLocatorDeps["runtime"]
  readonly queue?: CallQueue
  readonly maxTextBytes?: number
}

const ownBundleRoot = (): string => dirname(dirname(fileURLToPath(import.meta.url)))

const ownRuntime = (): LedgerLocatorDeps["runtime"] => ({
  execPath: process.execPath,
  isBun: process.versions.bun !== undefined,
  platform: process.platform,
})

const isUnknownTask = (stderr: string): boolean => /item not found:|FOREIGN KEY constraint failed/.test(stderr)

const complaint = (stderr: string): string =>
  (/^Error: (.+)$/m.exec(stderr)?.[1] ?? stderr.trim().split("\n")[0] ?? "").slice(0, 300)

const toProgram = (located: LocatedLedger): LedgerProgram =>
  located.kind === "unavailable" ? located : { kind: located.kind, path: located.path }

/** The ledger of one directory: the real prog or the embedded one. Does nothing before its first call. */
export const createLedger = (deps: LedgerDeps): Ledger => {
  const { run, directory, log, state, env = process.env, runtime = ownRuntime() } = deps
  const { bundleRoot = ownBundleRoot(), maxTextBytes = textLimit(runtime.platform) } = deps
  const { queue = createCallQueue(directory) } = deps
  const locator = createLedgerLocator({ log, bundleRoot, env, runtime })

  const hung = (what: string): LedgerAnswer => {
    const restMs = queue.rest()
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
      case "exited":
        queue.wake()
        return outcome
      case "timed-out": {
        const what = `prog ${args[0]} did not end within ${deadlineMs} ms`
        return deadlineMs < HUNG_AFTER_MS ? { kind: "unavailable", reason: what } : hung(what)
      }
      case "not-started":
        locator.forget()
        return { kind: "unavailable", reason: outcome.cause }
    }
  }

  const call = async (args: readonly string[], deadlineMs: number, maxOutputBytes: number): Promise<LedgerAnswer> => {
    const turn = await queue.take(deadlineMs, (remaining) => runLedger(args, maxOutputBytes, remaining))
    if (turn.kind === "ran") return turn.value
    if (turn.kind === "busy") return { kind: "unavailable", reason: `earlier calls took the whole ${deadlineMs} ms` }
    return {
      kind: "unavailable",
      reason: `prog hung before and is left alone for another ${Math.ceil(turn.forMs / 1000)} s`,
    }
  }

  const write = async (args: readonly string[], deadlineMs = WRITE_DEADLINE_MS): Promise<LedgerWrite> => {
    const answer = await call(args, deadlineMs, MAX_OUTPUT_BYTES)
    if (answer.kind === "unavailable") return answer
    if (answer.exitCode === 0) return { kind: "written" }
    if (isUnknownTask(answer.stderr)) return { kind: "unknown" }
    const reason = `prog ${args[0]} exited with ${answer.exitCode}: ${complaint(answer.stderr)}`
    // A signal may have come after the work was done.
    return { kind: answer.exitCode >= FIRST_SIGNAL_EXIT_CODE ? "unavailable" : "refused", reason }
  }

  const shorten: Ledger["shorten"] = async (id, text, room = 0) => {
    const fitted = fitText(id, text, maxTextBytes - room)
    if (fitted.kind === "whole") return fitted.text
    if (fitted.kind === "no-room") {
      throw new NoRoomError(
        `a text for ${id} has ${maxTextBytes - room} of ${maxTextBytes} bytes left, which is too few`,
      )
    }
    const path = state.path("handoffs", fitted.file)
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
      read: (args, { deadlineMs = READ_DEADLINE_MS } = {}) => call(args, deadlineMs, MAX_OUTPUT_BYTES),
      write: (args) => write(args),
    }),
    shorten,
    readTask: async (id, { deadlineMs = READ_DEADLINE_MS }: CallOptions = {}) => {
      const answer = await call(["show", "--json", "--", id], deadlineMs, MAX_OUTPUT_BYTES)
      if (answer.kind === "unavailable") return answer
      if (answer.exitCode !== 0) {
        if (isUnknownTask(answer.stderr)) return { kind: "unknown" }
        const reason = `prog show exited with ${answer.exitCode}: ${complaint(answer.stderr)}`
        return { kind: "unavailable", reason, answered: true }
      }
      try {
        return { kind: "found", task: parseTaskJson(answer.stdout) }
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
      const text = toSendable(description)
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
