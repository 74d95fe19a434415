import { answeredPermission, field, type RawEvent, sessionOf, text } from "../host/schema.ts"
import { shorten } from "../host/text.ts"
import type { Observation, PendingQuestion } from "./protocol.ts"

export type Observed =
  | { readonly kind: "session"; readonly sessionID: string; readonly seen: Observation }
  | { readonly kind: "session-created"; readonly sessionID: string; readonly parentID: string | undefined }
  /** A user's message, or a change of one: OpenCode adds the turn's file changes to it while the turn runs. */
  | { readonly kind: "user-message"; readonly sessionID: string; readonly messageID: string }
  | { readonly kind: "deleted"; readonly sessionID: string }

const TEXT_CHARACTERS = 500
const MAX_OPTIONS = 20

const count = (value: unknown): number =>
  typeof value === "number" && Number.isFinite(value) && value > 0 ? Math.round(value) : 0
const shortened = (value: string): string => shorten(value, TEXT_CHARACTERS)

/** The command of a permission (whole on 1.18.33, else its parts), or the path or address. */
const subjectOf = (properties: unknown): string => {
  const command = text(field(properties, "metadata", "command"))
  const patterns = field(properties, "patterns")
  const parts = Array.isArray(patterns) ? patterns.filter((each) => typeof each === "string") : []
  return shortened(command ?? parts.join(", "))
}

/** OpenCode's own title until it has made one. */
const NO_TITLE = /^(?:New|Child) session - \d{4}-/

const titled = (sessionID: string, title: string | undefined): Observed[] =>
  title === undefined || NO_TITLE.test(title) ? [] : session(sessionID, { kind: "titled", title: shortened(title) })

const questionOf = (properties: unknown): PendingQuestion | undefined => {
  const id = text(field(properties, "id"))
  const asked = field(properties, "questions", "0")
  if (id === undefined) return undefined
  const options = field(asked, "options")
  return {
    id,
    text: shortened(text(field(asked, "question")) ?? ""),
    header: shortened(text(field(asked, "header")) ?? ""),
    options: (Array.isArray(options) ? options : [])
      .flatMap((option: unknown) => text(option) ?? text(field(option, "label")) ?? [])
      .slice(0, MAX_OPTIONS)
      .map(shortened),
  }
}

const tokensOf = (info: unknown): number =>
  ["input", "output", "reasoning"].reduce((sum, name) => sum + count(field(info, "tokens", name)), 0) +
  count(field(info, "tokens", "cache", "read")) +
  count(field(info, "tokens", "cache", "write"))

const session = (sessionID: string, seen: Observation): Observed[] => [{ kind: "session", sessionID, seen }]

const messageUpdated = (info: unknown, sessionID: string): Observed[] => {
  const role = field(info, "role")
  const id = text(field(info, "id"))
  if (id === undefined) return []
  if (role === "user") return [{ kind: "user-message", sessionID, messageID: id }]
  if (role !== "assistant") return []
  const [providerID, modelID] = [text(field(info, "providerID")), text(field(info, "modelID"))]
  if (field(info, "time", "completed") === undefined)
    return providerID && modelID
      ? session(sessionID, { kind: "model-used", providerID, modelID, isSummary: field(info, "summary") === true })
      : []
  const contextTokens = tokensOf(info)
  return contextTokens > 0 ? session(sessionID, { kind: "message-finished", messageID: id, contextTokens }) : []
}

const READ_BY_TYPE: Readonly<Record<string, (properties: unknown, sessionID: string, type: string) => Observed[]>> = {
  "session.created": (properties, sessionID) => [
    { kind: "session-created", sessionID, parentID: text(field(properties, "info", "parentID")) },
    ...titled(sessionID, text(field(properties, "info", "title"))),
  ],
  "session.updated": (properties, sessionID) => titled(sessionID, text(field(properties, "info", "title"))),
  "session.deleted": (_properties, sessionID) => [{ kind: "deleted", sessionID }],
  "session.idle": (_properties, sessionID) => session(sessionID, { kind: "idle" }),
  "session.status": (properties, sessionID) => statusChanged(field(properties, "status"), sessionID),
  "session.compacted": (_properties, sessionID) => session(sessionID, { kind: "compacted" }),
  "command.executed": (properties, sessionID) =>
    /^(?:baton-)?handoff$/.test(text(field(properties, "name")) ?? "") ? session(sessionID, { kind: "handoff" }) : [],
  "message.updated": (properties, sessionID) => messageUpdated(field(properties, "info"), sessionID),
  "permission.asked": (properties, sessionID, eventType) => permissionAsked(properties, sessionID, eventType),
  "permission.updated": (properties, sessionID, eventType) => permissionAsked(properties, sessionID, eventType),
  "permission.replied": (properties, sessionID) => {
    const id = answeredPermission(properties)
    return id === undefined ? [] : session(sessionID, { kind: "permission-replied", id })
  },
  "question.asked": (properties, sessionID) => {
    const question = questionOf(properties)
    return question ? session(sessionID, { kind: "question-asked", question }) : []
  },
  "question.replied": (properties, sessionID) => questionEnded(properties, sessionID),
  "question.rejected": (properties, sessionID) => questionEnded(properties, sessionID),
}

/** No longer than a date can be. */
const LAST_DATE_MS = 8.64e15

const statusChanged = (status: unknown, sessionID: string): Observed[] => {
  const type = field(status, "type")
  if (type === "busy") return session(sessionID, { kind: "busy" })
  if (type !== "retry") return []
  const next = count(field(status, "next"))
  return session(sessionID, {
    kind: "retrying",
    message: shortened(text(field(status, "message")) ?? ""),
    attempt: count(field(status, "attempt")),
    nextAt: next > 0 && next <= LAST_DATE_MS ? new Date(next).toISOString() : null,
  })
}

const permissionAsked = (properties: unknown, sessionID: string, eventType: string): Observed[] => {
  const id = text(field(properties, "id"))
  if (id === undefined) return []
  // 1.18 has `permission`, others `type` and `title`.
  const type = text(field(properties, "permission")) ?? text(field(properties, "type")) ?? "unknown"
  const details = { id, title: shortened(text(field(properties, "title")) ?? type), type }
  return session(sessionID, { kind: "permission-asked", eventType, details, subject: subjectOf(properties) })
}

const questionEnded = (properties: unknown, sessionID: string): Observed[] => {
  const id = text(field(properties, "requestID")) ?? text(field(properties, "id"))
  return id === undefined ? [] : session(sessionID, { kind: "question-ended", id })
}

/** The event types that are used here; hooks.ts repeats them, so that it need not load this file. */
export const READ_EVENTS: readonly string[] = Object.keys(READ_BY_TYPE)

/** Reads the observations from an event; none from an event of an unknown shape. */
export const readEvent = ({ type, properties }: RawEvent): readonly Observed[] => {
  const read = READ_BY_TYPE[type]
  if (!read) return []
  const sessionID = sessionOf(properties)
  return sessionID === undefined ? [] : read(properties, sessionID, type)
}
