import type { Event } from "@opencode-ai/sdk"
import { field, isRecord, text } from "../schema.ts"
import { toolName } from "./names.ts"

/** The fields that features read; the types of OpenCode 1 have more. */
const event = (type: string, properties: object): Event => ({ type, properties }) as unknown as Event

type Part = Readonly<Record<string, unknown>>

const partEvent = (sessionID: string, messageID: string, part: Part): Event =>
  event("message.part.updated", { part: { id: `prt_${messageID}`, sessionID, messageID, ...part } })

const messageEvent = (sessionID: string, id: string, more: object): Event =>
  event("message.updated", { info: { id, sessionID, role: "assistant", ...more } })

/** The event of OpenCode 1 that a session was created. @param session with the fields of a session's info */
export const sessionCreated = (session: object): Event => event("session.created", { info: session })

/** OpenCode 1 tells of an undo, its redo and its end by the session. */
const reverted = (id: string, { revert }: Part): Event[] => [
  event("session.updated", { info: { id, ...(isRecord(revert) ? { revert } : {}) } }),
]

const ended = (sessionID: string): Event[] => [event("session.idle", { sessionID })]

/** @param data the event's @param at its time in epoch ms */
const TRANSLATIONS: Readonly<Record<string, (sessionID: string, data: Part, at: number) => Event[]>> = {
  "session.created": (id, { parentID, title, projectID, location, version }, at) => [
    sessionCreated({
      id,
      title: title ?? "",
      projectID,
      directory: field(location, "directory"),
      ...(typeof parentID === "string" ? { parentID } : {}),
      time: { created: at, updated: at },
      version,
    }),
  ],
  "session.deleted": (id, { parentID }) => [
    event("session.deleted", { info: { id, ...(typeof parentID === "string" ? { parentID } : {}) } }),
  ],
  "session.revert.staged": reverted,
  "session.revert.cleared": reverted,
  "session.revert.committed": reverted,
  "session.execution.started": (sessionID) => [event("session.status", { sessionID, status: { type: "busy" } })],
  "session.execution.succeeded": ended,
  "session.execution.interrupted": ended,
  "session.execution.failed": (sessionID, { error }) => {
    const statusCode = field(error, "status")
    const data = { message: text(field(error, "message")) ?? "", ...(statusCode === undefined ? {} : { statusCode }) }
    const said = { name: text(field(error, "type")) ?? text(field(error, "name")) ?? "error", data }
    return [event("session.error", { sessionID, error: said }), ...ended(sessionID)]
  },
  "permission.asked": (sessionID, { id, action, resources: patterns }) => [
    event("permission.asked", { id, sessionID, permission: toolName(String(action)), patterns }),
  ],
  "permission.replied": (sessionID, { requestID, reply }) => [
    event("permission.replied", { sessionID, requestID, reply }),
  ],
  "session.compaction.ended": (sessionID) => [event("session.compacted", { sessionID })],
  "session.step.started": (sessionID, { assistantMessageID }, at) => [
    messageEvent(sessionID, String(assistantMessageID), { time: { created: at } }),
  ],
  "session.text.ended": (sessionID, { assistantMessageID, text: words }) => [
    partEvent(sessionID, String(assistantMessageID), { type: "text", text: words }),
  ],
  "session.step.ended": (sessionID, { assistantMessageID, tokens, cost, finish, files }, at) => {
    const id = String(assistantMessageID)
    const done = messageEvent(sessionID, id, { time: { created: at, completed: at }, tokens, cost, finish })
    const changed = Array.isArray(files) ? files.filter((file) => typeof file === "string") : []
    return changed.length === 0 ? [done] : [done, partEvent(sessionID, id, { type: "patch", files: changed })]
  },
}

/**
 * Translates an event of OpenCode 2 into those of OpenCode 1, in order. Pure.
 *
 * @returns none for an event that no feature needs, or of another folder
 */
export const toEvents = (raw: unknown, directory: string): Event[] => {
  const type = text(field(raw, "type"))
  // A service tells each plugin of all its folders.
  if (type === "location.shutdown")
    return field(raw, "location", "directory") === directory ? [event("server.instance.disposed", { directory })] : []
  const data = field(raw, "data")
  const sessionID = text(field(data, "sessionID"))
  const place = text(field(raw, "location", "directory")) ?? directory
  if (type === undefined || sessionID === undefined || place !== directory || !isRecord(data)) return []
  const created = field(raw, "created")
  return TRANSLATIONS[type]?.(sessionID, data, typeof created === "number" ? created : 0) ?? []
}
