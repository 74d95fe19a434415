import type { ChildSessions } from "../host/child-sessions.ts"
import type { Log } from "../host/log.ts"
import { findMessageTarget, type Sessions } from "../host/sessions.ts"

/** A result that its originator does not wait for any more. */
export type Notice = { readonly passID: string; readonly text: string }

export type AnnouncerDeps = {
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
    const target = open.length === 0 ? undefined : await findMessageTarget(sessions, sessionID)
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
