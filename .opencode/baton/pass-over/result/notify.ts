import { withDeadline } from "../../host/async.ts"
import type { ChildSessions } from "../../host/child-sessions.ts"
import { type Log, truncate } from "../../host/log.ts"
import { findAgentAndModel, type Sessions } from "../../host/sessions.ts"
import type { Tui } from "../../host/tui.ts"
import type { Outbox } from "../../ledger/outbox-store.ts"
import type { LivePass, PassSession } from "../child/active-passes.ts"
import type { PassRecord } from "../store/record.ts"
import { CHILD_MESSAGES, isAtRest } from "./work-output.ts"

/** How long a child stands still at most while its result is taken. */
const TAKING_MS = 300

/**
 * A child has returned: where nothing that it began is at work any more, its pass need not wait for its closing words. Where
 * that cannot be told, the end of its turn tells it. Never rejects.
 *
 * @returns when the result is taken, or the child may as well go on
 */
export const noteRest = async (
  { sessions, log }: { sessions: Pick<Sessions, "messages">; log: Pick<Log, "debug"> },
  session: PassSession,
  pass: LivePass,
): Promise<void> => {
  if (pass.childSessionID === null) return
  const read = await sessions.messages(pass.childSessionID, CHILD_MESSAGES)
  if (read.kind === "answer" && isAtRest(read.value.messages, session.begun)) {
    pass.transcript = read.value.messages
    pass.rest.resolve()
    await withDeadline(pass.finished, TAKING_MS)
    return
  }
  const reason = read.kind === "answer" ? "other tools are at work" : read.reason
  log.debug("a pass that has returned waits for the end of its turn", { pass: pass.id, reason })
}

const TOAST_MS = 6_000
const LINE_CHARACTERS = 200

/** Whether a person should look: it did not go well, or something was found. */
const hasIssues = ({ output }: PassRecord): boolean =>
  output !== null &&
  (output.status !== "completed" || output.artifacts.some(({ type }) => type === "finding") || output.error !== null)

const line = (text: string): string => truncate(text.replaceAll(/\s+/g, " ").trim(), LINE_CHARACTERS)

type ResultNotesDeps = {
  readonly outbox: Pick<Outbox, "add">
  readonly tui: Pick<Tui, "showToast">
  readonly hasUser: boolean
  readonly log: Log
}

/** Notes a result where people look: in the log of its task, and on the screen where the policy says so. */
export const createResultNotes = ({ outbox, tui, hasUser, log }: ResultNotesDeps) => {
  const show = async (record: PassRecord): Promise<void> => {
    const { notify_on_return: notify } = record.policy.values
    if (!hasUser || notify === "never" || (notify === "only_issues" && !hasIssues(record))) return
    const { subagent_id: subagent } = record.request
    const { output } = record
    const decision = output?.status === "completed" ? output.summary.decision?.replaceAll("_", " ") : undefined
    const verdict = decision ?? output?.status ?? ""
    const message = line(`${verdict}: ${output?.summary.text ?? ""}`)
    const variant = hasIssues(record) ? "warning" : "success"
    const shown = await tui.showToast({ title: `${subagent} returned`, message, variant, durationMs: TOAST_MS })
    if (shown.kind === "failed") log.debug("toast not shown", { reason: shown.reason })
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
    // Nobody waits for a notice on the screen.
    void show(record)
  }
}

/** A result that its originator does not wait for any more. */
export type Notice = { readonly passID: string; readonly text: string }

type AnnouncerDeps = {
  readonly sessions: Pick<Sessions, "messages">
  readonly childSessions: Pick<ChildSessions, "isBusy" | "start">
  /** What a session has not been told, oldest first, from disk. */
  readonly notices: (sessionID: string) => Promise<readonly Notice[]>
  readonly told: (passID: string) => Promise<void>
  readonly log: Log
}

export type Announcer = {
  /** Something is to be told: now when the session is idle, else as soon as it is. */
  due(sessionID: string): Promise<void>
  /** Something of an earlier process is to be told when the session next falls idle: nobody is prompted out of the blue. */
  expect(sessionID: string): void
  /** The session has fallen idle. */
  idle(sessionID: string): Promise<void>
  forget(sessionID: string): void
}

const NEWEST_MESSAGES = 100

/** What stands in a message that tells of a pass, by which it is known again. */
const noticeMark = (passID: string): string => `[result of ${passID}]`

/**
 * Tells originators of results that came after they had gone on. Each session is told when it is idle, one turn for all that
 * is due, and once: what stands in its messages is not said again, also after a crash between telling and noting it.
 */
export const createAnnouncer = ({ sessions, childSessions, notices, told, log }: AnnouncerDeps): Announcer => {
  /** With a number that grows when more becomes due. */
  const due = new Map<string, number>()
  const telling = new Set<string>()

  const findTold = async (sessionID: string): Promise<(notice: Notice) => boolean> => {
    const newest = await sessions.messages(sessionID, NEWEST_MESSAGES)
    if (newest.kind === "failed") return () => false
    const texts = newest.value.messages.flatMap(({ info, parts }) =>
      info.role === "user" ? parts.flatMap((part) => (part.type === "text" ? [part.text] : [])) : [],
    )
    return ({ passID }) => texts.some((text) => text.includes(noticeMark(passID)))
  }

  const tell = async (sessionID: string): Promise<void> => {
    const known = due.get(sessionID)
    const all = await notices(sessionID)
    const isTold = all.length === 0 ? () => true : await findTold(sessionID)
    const open = all.filter((notice) => !isTold(notice))
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
    for (const { passID } of all) await told(passID)
    if (due.get(sessionID) === known) due.delete(sessionID)
  }

  const tellOnce = async (sessionID: string): Promise<void> => {
    if (telling.has(sessionID)) return
    telling.add(sessionID)
    try {
      await tell(sessionID)
    } finally {
      telling.delete(sessionID)
    }
  }

  const expect = (sessionID: string): void => {
    due.set(sessionID, (due.get(sessionID) ?? 0) + 1)
  }

  return {
    expect,
    due: async (sessionID) => {
      expect(sessionID)
      const busy = await childSessions.isBusy(sessionID)
      if (busy.kind === "answer" && !busy.value) await tellOnce(sessionID)
    },
    idle: async (sessionID) => {
      if (due.has(sessionID)) await tellOnce(sessionID)
    },
    forget: (sessionID) => {
      due.delete(sessionID)
    },
  }
}
