import { randomBytes } from "node:crypto"
import type { StoredMessage } from "./sessions.ts"

/**
 * Adds the note to the compaction request among the messages of one model request. Only this request sees it: what
 * OpenCode has stored stays as it is.
 */
export const withNote = (messages: StoredMessage[], requestID: string, note: string): void => {
  const request = messages.find((message) => message.info.id === requestID)
  if (!request || request.parts.some((part) => part.type === "text" && part.text === note)) return
  const { sessionID } = request.info
  const id = `prt_baton${randomBytes(8).toString("hex")}`
  request.parts.push({ id, sessionID, messageID: requestID, type: "text", synthetic: true, text: note })
}
