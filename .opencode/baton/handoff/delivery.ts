import type { Log } from "../host/log.ts"
import type { PermissionRule } from "../host/permissions.ts"
import type { AgentAndModel, Sessions } from "../host/sessions.ts"
import { onOneLine, shorten } from "../host/text.ts"
import type { Interface, Notices, Tui } from "../host/tui.ts"

/**
 * The TUI needs a moment to show the new session's prompt and does not report when it has: with 0 ms between the two calls 10 of
 * 13 drafts were lost, with 50 ms none of 30, with 150 ms none of 58, under load too.
 */
export const NEW_SESSION_SETTLE_MS = 150
const TITLE_CHARACTERS = 60
/** Until a started session has its first message. */
const ARRIVAL_DEADLINE_MS = 10_000
const ARRIVAL_POLL_MS = 100
/** More than a session has when its first message was stored a moment ago. */
const FIRST_MESSAGES = 10

/** `opencode run` denies these to each session that it makes: no user could answer there. */
const DENIED_IN_RUNS = new Set(["question", "plan_enter", "plan_exit"])

const isOfRuns = ({ permission, pattern, action }: PermissionRule): boolean =>
  action === "deny" && pattern === "*" && DENIED_IN_RUNS.has(permission)

export type Delivered =
  | { readonly kind: "draft" }
  /** The draft is the first message of a new session; no model was started. */
  | { readonly kind: "stored"; readonly sessionID: string; readonly title: string }
  /** The new session works on it. */
  | { readonly kind: "started"; readonly sessionID: string; readonly title: string }
  | { readonly kind: "failed"; readonly reason: string; readonly sessionID?: string }

type Draft = {
  readonly text: string
  readonly goal: string
  readonly target: Partial<AgentAndModel> | undefined
  /** The rules of the session that hands over. */
  readonly permission: readonly PermissionRule[]
  /** Given where the new session is to start at once. @returns the reason to store the draft instead */
  readonly begin?: ((sessionID: string) => Promise<string | undefined>) | undefined
}

export type Delivery = (draft: Draft) => Promise<Delivered>

type DeliveryDeps = {
  sessions: Pick<Sessions, "create" | "store" | "start" | "messages">
  tui: Pick<Tui, "openNewSession" | "appendPrompt">
  notices: Notices
  userInterface: Interface
  log: Log
  pause: (ms: number) => Promise<void>
}

/** The title of a session that a draft begins. */
export const handoffTitle = (goal: string): string => `Handoff: ${shorten(onOneLine(goal), TITLE_CHARACTERS)}`

/** Delivers a draft to the user, or to a session that begins at once; docs/handoff.md says where on each interface. */
export const createDelivery = ({ sessions, tui, notices, userInterface, log, pause }: DeliveryDeps): Delivery => {
  const deliverToPrompt = async (text: string): Promise<Delivered> => {
    const opened = await tui.openNewSession()
    if (opened.kind === "failed") return opened
    await pause(NEW_SESSION_SETTLE_MS)
    const appended = await tui.appendPrompt(text)
    if (appended.kind === "failed") return appended
    notices({ title: "Handoff Ready", message: "Review and edit the draft, then send" })
    return { kind: "draft" }
  }

  const holds = async (sessionID: string, text: string): Promise<boolean | string> => {
    const read = await sessions.messages(sessionID, FIRST_MESSAGES)
    if (read.kind === "failed") return read.reason
    const parts = read.value.messages.flatMap((message) => message.parts)
    return parts.some((part) => part.type === "text" && part.text === text)
  }

  /** OpenCode may answer without an error and store nothing. @returns the failure, if any */
  const checkArrival = async (sessionID: string, text: string, isStarted: boolean): Promise<Delivered | undefined> => {
    const polls = isStarted ? ARRIVAL_DEADLINE_MS / ARRIVAL_POLL_MS : 1
    let found: boolean | string = false
    for (let poll = 0; poll < polls && found !== true; poll++) {
      if (poll > 0) await pause(ARRIVAL_POLL_MS)
      found = await holds(sessionID, text)
    }
    if (found === true) return undefined
    return { kind: "failed", reason: found === false ? "the new session does not hold the draft" : found, sessionID }
  }

  const deliverToSession: Delivery = async ({ text, goal, target, permission, begin }) => {
    const title = handoffTitle(goal)
    const created = await sessions.create(title, permission)
    if (created.kind === "failed") return created
    const sessionID = created.value
    const obstacle = await begin?.(sessionID)
    if (obstacle !== undefined) log.warn("the new session is not started", { sessionID, reason: obstacle })
    const isStarted = begin !== undefined && obstacle === undefined
    const sent = await (isStarted ? sessions.start : sessions.store)(sessionID, text, target)
    if (sent.kind === "failed") return { ...sent, sessionID }
    const failed = await checkArrival(sessionID, text, isStarted)
    return failed ?? { kind: isStarted ? "started" : "stored", sessionID, title }
  }

  return async (draft) => {
    // A session that the TUI makes has no rules.
    if (userInterface === "tui" && !draft.begin && draft.permission.every(isOfRuns)) {
      const delivered = await deliverToPrompt(draft.text)
      if (delivered.kind !== "failed") return delivered
      log.warn("the TUI did not take the draft: it is stored in a session instead", { reason: delivered.reason })
    }
    const delivered = await deliverToSession(draft)
    // OpenCode does not tell whether a TUI is attached to a server.
    if (userInterface === "run" || (delivered.kind !== "stored" && delivered.kind !== "started")) return delivered
    const [title = "", what = ""] =
      delivered.kind === "stored" ? ["Handoff Ready", "Stored"] : ["Handoff Started", "At work"]
    notices({ title, message: `${what} as the session “${delivered.title}”` })
    return delivered
  }
}
