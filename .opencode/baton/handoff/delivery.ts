import { cutText, type Log } from "../host/log.ts"
import type { MessageTarget, Sessions } from "../host/sessions.ts"
import type { Interface, Tui } from "../host/tui.ts"

/**
 * The TUI needs a moment to put up the new session's prompt, and says nothing when it has: with 0 ms between the two
 * calls 10 of 13 drafts were lost, with 50 ms none of 30, with 150 ms none of 58, under load too.
 */
export const NEW_SESSION_SETTLE_MS = 150
const TOAST_MS = 4_000
const TITLE_CHARACTERS = 60

export type Delivered =
  | { readonly kind: "draft" }
  /** The draft is the first message of a session; no model has been started. */
  | { readonly kind: "stored"; readonly sessionID: string; readonly title: string }
  | { readonly kind: "failed"; readonly reason: string; readonly sessionID?: string }

export type Delivery = (draft: {
  readonly text: string
  readonly goal: string
  readonly target: MessageTarget | undefined
}) => Promise<Delivered>

export type DeliveryDeps = {
  sessions: Pick<Sessions, "create" | "store" | "messages">
  tui: Tui
  userInterface: Interface
  log: Log
  pause: (ms: number) => Promise<void>
}

const titleOf = (goal: string): string => {
  const line = goal.replaceAll(/\s+/g, " ").trim()
  return `Handoff: ${line.length > TITLE_CHARACTERS ? `${cutText(line, TITLE_CHARACTERS - 1).trimEnd()}…` : line}`
}

/** Brings a draft to where a person finds it; see docs/handoff.md for what happens on which interface. */
export const createDelivery = ({ sessions, tui, userInterface, log, pause }: DeliveryDeps): Delivery => {
  const intoPrompt = async (text: string): Promise<Delivered> => {
    const opened = await tui.openNewSession()
    if (opened.kind === "failed") return opened
    await pause(NEW_SESSION_SETTLE_MS)
    const appended = await tui.appendPrompt(text)
    if (appended.kind === "failed") return appended
    const message = "Review and edit the draft, then send"
    const shown = await tui.showToast({ title: "Handoff Ready", message, variant: "success", durationMs: TOAST_MS })
    if (shown.kind === "failed") log.debug("toast not shown", { reason: shown.reason })
    return { kind: "draft" }
  }

  /** What was stored is read back: an answer without an error is not yet a message. */
  const intoSession: Delivery = async ({ text, goal, target }) => {
    const title = titleOf(goal)
    const created = await sessions.create(title)
    if (created.kind === "failed") return created
    const sessionID = created.value
    const stored = await sessions.store(sessionID, text, target)
    if (stored.kind === "failed") return { ...stored, sessionID }
    const read = await sessions.messages(sessionID, 1)
    if (read.kind === "failed") return { ...read, sessionID }
    const parts = read.value.messages[0]?.parts ?? []
    if (!parts.some((part) => part.type === "text" && part.text === text))
      return { kind: "failed", reason: "the new session does not hold the draft", sessionID }
    return { kind: "stored", sessionID, title }
  }

  return async (draft) => {
    if (userInterface === "tui") {
      const delivered = await intoPrompt(draft.text)
      if (delivered.kind !== "failed") return delivered
      log.warn("the TUI did not take the draft: it is stored in a session instead", { reason: delivered.reason })
    }
    const delivered = await intoSession(draft)
    if (delivered.kind === "stored" && userInterface === "server") {
      // A TUI may be attached or not; nobody is told who is there.
      const message = `Stored as the session “${delivered.title}”`
      await tui.showToast({ title: "Handoff Ready", message, variant: "success", durationMs: TOAST_MS })
    }
    return delivered
  }
}
