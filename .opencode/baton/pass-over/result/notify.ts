import type { ChildSessions } from "../../host/child-sessions.ts"
import type { Log } from "../../host/log.ts"
import { findAgentAndModel, type Sessions } from "../../host/sessions.ts"
import { counted, cutText, onOneLine } from "../../host/text.ts"
import type { Notices } from "../../host/tui.ts"
import type { Outbox } from "../../ledger/outbox-store.ts"
import type { PassRecord } from "../store/record.ts"
import { renderReading } from "./reading.ts"

const LINE_CHARACTERS = 200

/** It failed in part, or has findings. */
const hasIssues = ({ output }: PassRecord): boolean =>
  output !== null &&
  (output.status !== "completed" || output.artifacts.some(({ type }) => type === "finding") || output.error !== null)

/** "changes requested, 1 finding, 2 files read": the decision of completed work, or its status, findings, and what was read. */
export const renderVerdict = (output: PassRecord["output"]): string => {
  if (!output) return "no result"
  const { status, summary, artifacts } = output
  const decision = status === "completed" ? summary.decision?.replaceAll("_", " ") : undefined
  const findings = artifacts.filter(({ type }) => type === "finding").length
  return [
    decision ?? status,
    ...(findings === 0 ? [] : [counted(findings, "finding")]),
    renderReading(output.reading),
  ].join(", ")
}

const line = (text: string): string => cutText(onOneLine(text), LINE_CHARACTERS)

type ResultRecorderDeps = {
  readonly outbox: Pick<Outbox, "add">
  readonly notices: Notices
}

/** Adds a result to its task's log, and shows it on the screen if the policy says so. */
export const createResultRecorder = ({ outbox, notices }: ResultRecorderDeps) => {
  const show = (record: PassRecord): void => {
    const { notify_on_return: notify } = record.policy.values
    if (notify === "never" || (notify === "only_issues" && !hasIssues(record))) return
    const { request, output } = record
    const message = line(`${renderVerdict(output)}: ${output?.summary.text ?? ""}`)
    notices({ title: `${request.subagent_id} returned`, message, isProblem: hasIssues(record) })
  }
  return async (record: PassRecord): Promise<void> => {
    const { request, output, child_session_id: childSessionID } = record
    const { task } = request.work_context
    if (task && output) {
      const decision = output.summary.decision === null ? "" : `, ${output.summary.decision}`
      const what = `Pass ${request.originating_agent_id} → ${request.subagent_id}: ${output.status}${decision}`
      const message = line(`${what} (${request.pass_over_id}, ${childSessionID ?? "no session"}): ${request.reason}`)
      await outbox.add({ kind: "log", taskID: task.id, message })
    }
    show(record)
  }
}

/** A result that its originator no longer waits for. */
export type Notice = { readonly passID: string; readonly text: string }

type AnnouncerDeps = {
  readonly sessions: Pick<Sessions, "messages">
  readonly childSessions: Pick<ChildSessions, "isBusy" | "start">
  /** The notices that a session has not received, oldest first, from disk. */
  readonly notices: (sessionID: string) => Promise<readonly Notice[]>
  readonly acknowledge: (passID: string) => Promise<void>
  readonly log: Log
}

const NEWEST_MESSAGES = 100

/** The mark that identifies a pass in an announcement. */
const noticeMark = (passID: string): string => `[result of ${passID}]`

/**
 * Announces results that came after their originators had moved on. Each idle session gets one turn with all its notices, once: a
 * notice already in its messages is not repeated, even after a crash before that was stored.
 */
export const createAnnouncer = ({ sessions, childSessions, notices, acknowledge, log }: AnnouncerDeps) => {
  /** With a number that grows when more is queued. */
  const queued = new Map<string, number>()
  const announcing = new Set<string>()

  const findAnnounced = async (sessionID: string): Promise<(notice: Notice) => boolean> => {
    const newest = await sessions.messages(sessionID, NEWEST_MESSAGES)
    if (newest.kind === "failed") return () => false
    const texts = newest.value.messages.flatMap(({ info, parts }) =>
      info.role === "user" ? parts.flatMap((part) => (part.type === "text" ? [part.text] : [])) : [],
    )
    return ({ passID }) => texts.some((text) => text.includes(noticeMark(passID)))
  }

  const announce = async (sessionID: string): Promise<void> => {
    const known = queued.get(sessionID)
    const all = await notices(sessionID)
    const isAnnounced = all.length === 0 ? () => true : await findAnnounced(sessionID)
    const open = all.filter((notice) => !isAnnounced(notice))
    const target = open.length === 0 ? undefined : await findAgentAndModel(sessions, sessionID)
    if (open.length > 0 && !target) {
      log.warn("a result cannot be announced: the session does not say which agent works there", { sessionID })
      return
    }
    if (target) {
      const context = open.map(({ passID, text }) => `${noticeMark(passID)}\n${text}`).join("\n\n")
      const started = await childSessions.start(sessionID, { context, ...target })
      if (started.kind === "failed") {
        log.warn("a result was not announced; it is tried again", { sessionID, reason: started.reason })
        return
      }
      log.info("results announced", { sessionID, passes: open.map(({ passID }) => passID) })
    }
    for (const { passID } of all) await acknowledge(passID)
    if (queued.get(sessionID) === known) queued.delete(sessionID)
  }

  const announceOnce = async (sessionID: string): Promise<void> => {
    if (announcing.has(sessionID)) return
    announcing.add(sessionID)
    try {
      await announce(sessionID)
    } finally {
      announcing.delete(sessionID)
    }
  }

  /** Announces when the session next becomes idle: a result of an earlier process must not start a turn unexpectedly. */
  const queue = (sessionID: string): void => {
    queued.set(sessionID, (queued.get(sessionID) ?? 0) + 1)
  }

  return {
    queue,
    /** Announces now when the session is idle, else as soon as it is. */
    notify: async (sessionID: string): Promise<void> => {
      queue(sessionID)
      const busy = await childSessions.isBusy(sessionID)
      if (busy.kind === "ok" && !busy.value) await announceOnce(sessionID)
    },
    idle: async (sessionID: string): Promise<void> => {
      if (queued.has(sessionID)) await announceOnce(sessionID)
    },
    forget: (sessionID: string): void => {
      queued.delete(sessionID)
    },
  }
}

export type Announcer = ReturnType<typeof createAnnouncer>
