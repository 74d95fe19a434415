import { randomBytes } from "node:crypto"
import type { Part } from "@opencode-ai/sdk"
import type { StoredMessage } from "./sessions.ts"

const NOTE_ID = "prt_baton"

/** The text of a note that Baton put into this request; undefined for any other part. */
export const noteTextOf = (part: Part): string | undefined =>
  part.type === "text" && part.synthetic === true && part.id.startsWith(NOTE_ID) ? part.text : undefined

/**
 * Adds the note to one of the messages of one model request. Only this request sees it: what OpenCode has stored stays as
 * it is.
 */
export const withNote = (messages: StoredMessage[], messageID: string, note: string): void => {
  const message = messages.find(({ info }) => info.id === messageID)
  if (!message || message.parts.some((part) => part.type === "text" && part.text === note)) return
  const { sessionID } = message.info
  const id = `${NOTE_ID}${randomBytes(8).toString("hex")}`
  message.parts.push({ id, sessionID, messageID, type: "text", synthetic: true, text: note })
}
