import { closeSync, fstatSync, lstatSync, mkdirSync, readSync, writeFileSync } from "node:fs"
import { rm, rmdir, stat } from "node:fs/promises"
import { join } from "node:path"
import { describeError, errorCode, type Log } from "../../host/log.ts"
import { redactedLine } from "../../host/secrets.ts"
import { PRIVATE_FILE, PRIVATE_FOLDER } from "../../host/state-mark.ts"
import { shorten } from "../../host/text.ts"
import { listFolder, openOwnToAppend } from "../../host/untrusted.ts"
import type { PassOverRequest } from "../contract.ts"
import type { PassOverError } from "../errors.ts"
import { type PassEvent, type PassRecord, type PassStateName, type Releaser, reasonToAsk } from "../store/record.ts"

type EventName = PassEvent["type"] | "sent" | "refused" | "attempt_failed" | "announced" | "released" | "withheld"

const REASON_CHARACTERS = 500

/** Cuts a text to one line, without secrets. */
const shortLine = (text: string): string => shorten(redactedLine(text, REASON_CHARACTERS + 1), REASON_CHARACTERS)

const shortError = (error: PassOverError | null | undefined): { code: string; message: string } | null =>
  error ? { code: error.code, message: shortLine(error.message) } : null

/** The fields of a line that a pass which was never made has, too. */
export const refusalOf = (request: PassOverRequest) => ({
  pass_over_id: request.pass_over_id,
  root_session_id: request.metadata.root_session_id,
  originating_session_id: request.originating_session_id,
  originating_agent: request.originating_agent_id,
  subagent: request.subagent_id,
  reason: shortLine(request.reason),
  chain_depth: request.metadata.chain_depth,
})

export type RefusedPass = Readonly<ReturnType<typeof refusalOf>>

export type AuditEvent = {
  readonly at: string
  readonly event: EventName
  readonly error?: PassOverError | undefined
  /** The one who refused the result. */
  readonly by?: Releaser
}

/** Names the one who let a result go; the policy, where no question is asked. */
const releaserOf = (record: PassRecord): Releaser | null =>
  record.released_by ?? (record.output && reasonToAsk(record) === undefined ? "policy" : null)

/**
 * Makes the audit line of an event, from the pass's record after it: the design document's entry, and the fields that make the line
 * readable alone. Times are ISO 8601, UTC.
 */
export const auditEntry = (record: PassRecord, { at, event, error, by }: AuditEvent) => {
  const { request, state, output } = record
  return {
    version: 1 as const,
    at,
    event,
    /** Of the pass after the event; `refused` for one that was never made. */
    state: state.state as PassStateName | "refused",
    ...refusalOf(request),
    task_id: request.work_context.task?.id ?? null,
    started_at: request.metadata.created_at,
    policy_name: request.metadata.policy_name,
    child_session_id: record.child_session_id,
    completed_at: output?.metadata.completed_at ?? null,
    attempts: record.attempts,
    artifacts_count: output?.artifacts.length ?? 0,
    status: output?.status ?? null,
    is_late: "is_late" in state && state.is_late,
    /** The result was used, in whole or in part. */
    applied: state.state === "applied" || ("applied" in state && state.applied.length > 0),
    /** The one who let the result go, or refused it when the event is `withheld`. */
    decided_by: by ?? releaserOf(record),
    error: shortError(error ?? output?.error),
  }
}

export type AuditEntry = Readonly<ReturnType<typeof auditEntry>>

export const refusedEntry = (refused: RefusedPass, error: PassOverError, at: string): AuditEntry => ({
  version: 1,
  at,
  event: "refused",
  state: "refused",
  ...refused,
  reason: shortLine(refused.reason),
  child_session_id: null,
  task_id: null,
  started_at: at,
  completed_at: null,
  policy_name: "none",
  attempts: 0,
  artifacts_count: 0,
  status: null,
  is_late: false,
  applied: false,
  decided_by: null,
  error: shortError(error),
})

/** Fields that every reader of a line uses. */
const TEXTS = ["at", "event", "state", "pass_over_id", "started_at", "originating_agent", "subagent", "reason"]

/**
 * An entry of this version. No schema: that costs 5 µs per line and 70 ms to load, too much for a
 * query over 100,000 lines (docs/benchmarks.md).
 */
export const isAuditEntry = (value: unknown): value is AuditEntry =>
  typeof value === "object" &&
  value !== null &&
  Reflect.get(value, "version") === 1 &&
  TEXTS.every((key) => typeof Reflect.get(value, key) === "string")

export const AUDIT_FOLDER = ".opencode/pass-over-logs"
const AUDIT_MONTH = /^\d{4}-(?:0[1-9]|1[0-2])$/
export const AUDIT_FILE = /^session-([A-Za-z0-9_-]{1,128})-passes\.jsonl$/

const isLink = (path: string): boolean => lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true

/** The months in an audit's folder, oldest first. A link is left out: it came with the project, and may lead out of it. */
export const listMonths = (folder: string): string[] =>
  isLink(folder) ? [] : listFolder(folder).filter((name) => AUDIT_MONTH.test(name) && !isLink(join(folder, name)))

const DAY_MS = 86_400_000

const LINE_END = "\n".charCodeAt(0)

/** Appends a line in one write, after a complete line: a crash in the middle of an earlier write costs only that line. */
const appendLine = (path: string, line: string): void => {
  const file = openOwnToAppend(path, PRIVATE_FILE)
  try {
    const { size } = fstatSync(file)
    const last = Buffer.alloc(1)
    if (size > 0) readSync(file, last, 0, 1, size - 1)
    const isCutOff = size > 0 && last[0] !== LINE_END
    writeFileSync(file, `${isCutOff ? "\n" : ""}${line}\n`)
  } finally {
    closeSync(file)
  }
}

/**
 * The audit of a project: one append-only file per month and root session. No call throws.
 *
 * @param projectRoot absolute path of the folder that holds `.opencode`
 */
export const createAuditLog = ({ projectRoot, log }: { projectRoot: string; log: Pick<Log, "warn"> }) => {
  const folder = join(projectRoot, AUDIT_FOLDER)

  const ensure = (month: string): void => {
    for (const path of [folder, join(folder, month)])
      if (isLink(path)) throw new Error(`${path} is not used, since it is a link`)
    mkdirSync(join(folder, month), { recursive: true, mode: PRIVATE_FOLDER })
    try {
      writeFileSync(join(folder, ".gitignore"), "*\n", { flag: "wx" })
    } catch (error) {
      if (errorCode(error) !== "EEXIST") throw error
    }
  }

  const pruneMonth = async (month: string, before: number): Promise<void> => {
    for (const name of listFolder(join(folder, month)).filter((each) => AUDIT_FILE.test(each))) {
      const path = join(folder, month, name)
      if ((await stat(path)).mtimeMs < before) await rm(path, { force: true })
    }
    await rmdir(join(folder, month)).catch((error: unknown) => {
      if (!["ENOTEMPTY", "EEXIST", "ENOENT"].includes(errorCode(error) ?? "")) throw error
    })
  }

  return {
    /**
     * Waits for nothing, so that lines are in the order of the changes.
     *
     * @returns whether the line is in the file; it survives any kind of end of this process
     */
    append: async (entry: AuditEntry): Promise<boolean> => {
      const month = entry.at.slice(0, 7)
      const name = `session-${entry.root_session_id}-passes.jsonl`
      try {
        if (!AUDIT_MONTH.test(month) || !AUDIT_FILE.test(name)) throw new Error(`no name for a file: ${month}/${name}`)
        ensure(month)
        appendLine(join(folder, month, name), JSON.stringify(entry))
        return true
      } catch (error) {
        const { pass_over_id: passID, event } = entry
        log.warn("the audit could not be written", { passID, event, error: describeError(error) })
        return false
      }
    },
    /** Removes files whose newest line is older than this. @param now epoch ms */
    prune: async (retentionDays: number, now: number): Promise<void> => {
      try {
        for (const month of listMonths(folder)) await pruneMonth(month, now - retentionDays * DAY_MS)
      } catch (error) {
        log.warn("old audits could not be removed", { error: describeError(error) })
      }
    },
  }
}

export type AuditLog = ReturnType<typeof createAuditLog>
