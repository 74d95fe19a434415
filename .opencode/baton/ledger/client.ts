import { access, readdir } from "node:fs/promises"
import { describeError, type Log } from "../host/log.ts"
import type { StateFolder } from "../host/state.ts"
import { cutText, onOneLine } from "../host/text.ts"
import { TASKS_FOLDER } from "../task/session-task.ts"
import { TextTooLongError, takeBytes, textLimit, toArgument, truncateBytes } from "./description.ts"
import {
  type CallOptions,
  type ClaimLedger,
  type LearningLedger,
  type Ledger,
  type LedgerWrite,
  parseClaims,
  parseLearningsJson,
  parseTaskJson,
  parseTaskList,
  type RenewedClaims,
  type RunEnd,
  type TaskClaim,
  type TaskSummary,
} from "./ledger.ts"
import {
  complaint,
  createLedgerRunner,
  isUnknownTask,
  type LedgerAnswer,
  type LedgerRunner,
  ownRuntime,
  type RunnerDeps,
} from "./runner.ts"

const READ_DEADLINE_MS = 2000
const WRITE_DEADLINE_MS = 5000
const FIRST_SIGNAL_EXIT_CODE = 128

const reasonOf = (answer: LedgerAnswer): string =>
  answer.kind === "unavailable" ? answer.reason : `exit code ${answer.exitCode}: ${complaint(answer.stderr)}`

type LearningCallDeps = {
  readonly read: (args: readonly string[], options: CallOptions | undefined) => Promise<LedgerAnswer>
  readonly write: (args: readonly string[]) => Promise<LedgerWrite>
}

export const createLearningCalls = ({ read, write }: LearningCallDeps): LearningLedger => ({
  readLearnings: async (project, options) => {
    const answer = await read(["context", "-p", project, "--summary", "--include-stale", "--json"], options)
    if (answer.kind === "unavailable") return answer
    if (answer.exitCode !== 0) {
      const reason = `prog context exited with ${answer.exitCode}: ${cutText(answer.stderr.trim(), 300)}`
      return { kind: "unavailable", reason, answered: true }
    }
    try {
      return { kind: "found", learnings: parseLearningsJson(answer.stdout) }
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

type ClaimCalls = ClaimLedger &
  Pick<Ledger, "listClaims"> & {
    readClaim(id: string): Promise<TaskClaim | undefined>
  }

const sessionFlags = (sessionIDs: readonly string[]): string[] => sessionIDs.flatMap((id) => ["--session", id])

const parseRenewed = (stdout: string): RenewedClaims => {
  const lines = stdout.trim().split("\n")
  return new Map(lines.map((line) => line.split(" ")).map(([id = "", word]) => [id, word ? "reopened" : "claimed"]))
}

/** The ledger waits that long for a claim that is on its way. */
const CLAIM_UNDER_WAY_MS = 2_000
/** OpenCode stands still for so long at most, at its end. */
const END_DEADLINE_MS = 3_000

const createClaimCalls = (
  { runEmbedded, runEmbeddedNow }: Pick<LedgerRunner, "runEmbedded" | "runEmbeddedNow">,
  log: Log,
): ClaimCalls => {
  const endArgs = (ends: readonly RunEnd[], how: { late?: boolean; wait_ms?: number } = {}): string[] => [
    "run-end",
    "--",
    JSON.stringify(ends.map((end) => ({ ...end, pid: process.pid, ...how }))),
  ]
  const readClaims = async (args: readonly string[], deadlineMs: number) => {
    const answer = await runEmbedded(["claims", ...args, "--json"], deadlineMs)
    try {
      if (answer.kind === "exited" && answer.exitCode === 0) return parseClaims(answer.stdout)
      log.debug("the claims are unknown", { reason: reasonOf(answer) })
    } catch (error) {
      log.warn("the claims are unreadable", { error: describeError(error) })
    }
    return undefined
  }
  return {
    claimTask: async (id, sessionID, { deadlineMs = WRITE_DEADLINE_MS, isPerson = false } = {}) => {
      const person = isPerson ? ["--person"] : []
      const args = ["claim", "--pid", String(process.pid), ...person, ...sessionFlags([sessionID]), "--", id]
      const answer = await runEmbedded(args, deadlineMs)
      if (answer.kind === "unavailable") return answer
      if (answer.exitCode === 0) return { kind: "claimed" }
      const summary = HELD.exec(answer.stderr)?.[1]
      if (summary !== undefined) return { kind: "held", summary }
      const reason = `prog claim exited with ${answer.exitCode}: ${complaint(answer.stderr)}`
      const isRefused = isUnknownTask(answer.stderr) || answer.stderr.includes(`'prog open ${id}'`)
      return { kind: isRefused ? "refused" : "unavailable", reason }
    },
    renewClaims: async (sessionIDs, { deadlineMs = WRITE_DEADLINE_MS } = {}) => {
      const answer = await runEmbedded(["claim", "--renew", ...sessionFlags(sessionIDs)], deadlineMs)
      if (answer.kind === "exited" && answer.exitCode === 0) return parseRenewed(answer.stdout)
      log.warn("claims are not renewed", { sessionIDs, reason: reasonOf(answer) })
      return undefined
    },
    releaseClaims: async (sessionIDs) => {
      const answer = await runEmbedded(["release", ...sessionFlags(sessionIDs)], WRITE_DEADLINE_MS)
      if (answer.kind === "exited" && answer.exitCode === 0) log.debug("claims are released", { sessionIDs })
      else log.warn("claims are not released: they end with the process", { sessionIDs, reason: reasonOf(answer) })
    },
    endRuns: async (ends) => {
      const answer = await runEmbedded(endArgs(ends), WRITE_DEADLINE_MS)
      const sessionIDs = ends.map(({ session }) => session)
      if (answer.kind === "exited" && answer.exitCode === 0) log.debug("runs are ended", { sessionIDs })
      else log.warn("runs are not ended: they end with the process", { sessionIDs, reason: reasonOf(answer) })
    },
    endRunNow: (end, isBegun) => {
      const answer = runEmbeddedNow(
        endArgs([end], { late: true, wait_ms: isBegun ? CLAIM_UNDER_WAY_MS : 0 }),
        END_DEADLINE_MS,
      )
      const about = { sessionID: end.session, taskID: end.task, kind: end.kind }
      if (answer.kind === "exited" && answer.exitCode === 0) log.info("the run is ended", about)
      else log.warn("the run is not ended: the next claim --next does it", { ...about, reason: reasonOf(answer) })
    },
    readClaim: async (id) => (await readClaims([], READ_DEADLINE_MS))?.get(id),
    listClaims: (project, { deadlineMs = READ_DEADLINE_MS } = {}) => readClaims(["-p", project], deadlineMs),
  }
}

export type LedgerDeps = RunnerDeps & {
  readonly state: Pick<StateFolder, "path" | "write">
  readonly maxTextBytes?: number
}

/** Creates the ledger of one directory: the real prog or the embedded one. Does nothing before its first call. */
export const createLedger = (deps: LedgerDeps): Ledger => {
  const { log, state, maxTextBytes = textLimit((deps.runtime ?? ownRuntime()).platform) } = deps
  const runner = createLedgerRunner(deps)
  const { readClaim, ...claims } = createClaimCalls(runner, log)

  /** Sessions of this project had tasks, so there was a ledger. */
  const hasTasks = async (): Promise<boolean> => (await readdir(state.path(TASKS_FOLDER)).catch(() => [])).length > 0

  /** Features that ask for one task at the same time share the call. */
  const showing = new Map<string, Promise<LedgerAnswer>>()
  const show = (id: string, deadlineMs: number): Promise<LedgerAnswer> => {
    const running =
      showing.get(id) ?? runner.run(["show", "--json", "--", id], deadlineMs).finally(() => showing.delete(id))
    showing.set(id, running)
    return running
  }

  const write = async (args: readonly string[], deadlineMs = WRITE_DEADLINE_MS): Promise<LedgerWrite> => {
    const answer = await runner.run(args, deadlineMs)
    if (answer.kind === "unavailable") return answer
    if (answer.exitCode === 0) return { kind: "written" }
    if (isUnknownTask(answer.stderr)) return { kind: "unknown" }
    const reason = `prog ${args[0]} exited with ${answer.exitCode}: ${complaint(answer.stderr)}`
    // The signal may have come after the work was done.
    return { kind: answer.exitCode >= FIRST_SIGNAL_EXIT_CODE ? "unavailable" : "refused", reason }
  }

  const readList = async (
    args: readonly string[],
    { deadlineMs = READ_DEADLINE_MS }: CallOptions = {},
  ): Promise<readonly TaskSummary[] | undefined> => {
    const answer = await runner.run(args, deadlineMs)
    try {
      if (answer.kind === "exited" && answer.exitCode === 0) return parseTaskList(answer.stdout)
      log.warn("the tasks could not be listed", { reason: reasonOf(answer) })
    } catch (error) {
      log.warn("the list of tasks is unreadable", { error: describeError(error) })
    }
    return undefined
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

  /** A title as one argument, in one line. */
  const titleOf = (title: string): string => onOneLine(toArgument(title))

  return {
    ...createLearningCalls({
      read: async (args, { deadlineMs = READ_DEADLINE_MS } = {}) => {
        const answer = await runner.run(args, deadlineMs)
        if (answer.kind === "exited" || answer.missingDatabase === undefined || (await hasTasks())) return answer
        // No ledger yet: the first learning makes it.
        return { kind: "exited", exitCode: 0, stdout: "[]", stderr: "" }
      },
      write: (args) => write(args),
    }),
    mayHaveLearnings: runner.mayHaveLearnings,
    ...claims,
    shorten,
    readTask: async (id, { deadlineMs = READ_DEADLINE_MS, withClaim = false } = {}) => {
      // The embedded ledger shows the claim with the task.
      const claim = withClaim && (await runner.isReal()) ? readClaim(id) : undefined
      const answer = await show(id, deadlineMs)
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
        const received = JSON.stringify(cutText(answer.stdout, 80))
        const reason = `prog show printed ${received}, no task: ${describeError(error)}`
        return { kind: "unavailable", reason, answered: true }
      }
    },
    listTasks: ({ project, ...options } = {}) =>
      readList(["list", ...(project === undefined ? [] : ["-p", project, "--type", "task"]), "--json"], options),
    readyTasks: (project, options) => readList(["ready", "-p", project, "--json"], options),
    addTask: async ({ project, title, description, label }, { deadlineMs = WRITE_DEADLINE_MS } = {}) => {
      // prog takes words that begin with a dash as flags.
      const text = takeBytes(toArgument(description), maxTextBytes)
      const flags = ["-p", project, ...(label === undefined ? [] : ["-l", label]), "--desc", text]
      const answer = await runner.run(["add", ...flags, "--", titleOf(title)], deadlineMs)
      const id = answer.kind === "exited" && answer.exitCode === 0 ? answer.stdout.trim() : undefined
      return id ? { kind: "added", id } : { kind: "failed", reason: reasonOf(answer) }
    },
    setLabel: (id, label, how, { deadlineMs } = {}) => write([how, "--", id, label], deadlineMs),
    setStatus: (id, how, { deadlineMs } = {}) => write([how, "--", id], deadlineMs),
    rewriteTask: async (id, { title, description }, { deadlineMs } = {}) => {
      const written = await write(["edit", `--title=${titleOf(title)}`, "--", id], deadlineMs)
      const text = takeBytes(toArgument(description), maxTextBytes)
      return written.kind === "written" ? write(["desc", "--", id, text], deadlineMs) : written
    },
    finishTask: (id, { deadlineMs } = {}) => write(["done", "--", id], deadlineMs),
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
    status: runner.status,
  }
}
