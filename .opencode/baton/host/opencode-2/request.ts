import type { StoredMessage } from "../sessions.ts"
import type { Context, RequestEvent, RequestMessage } from "./context.ts"
import { sourceID, toStoredMessages } from "./messages.ts"

/** A request to the model, as features see and change it. */
export type Request = {
  readonly messages: StoredMessage[]
  /** Carries over the texts that were added and the tools that were left out since the last call. */
  apply(): void
}

const isUsers = ({ role }: RequestMessage): boolean => role === "user"

/** Reads a request's messages with their times, which only the stored ones have. @throws Error when OpenCode does not give them */
export const readRequest = async (
  context: Pick<Context, "session">,
  { sessionID, agent, model, messages: sent, tools }: RequestEvent,
): Promise<Request> => {
  const entries = await context.session.context({ sessionID })
  const messages = toStoredMessages(sessionID, entries, { agent, model })
  const carried = new Set<unknown>(messages.flatMap(({ parts }) => parts))

  const find = (wanted: string) => sent.find(({ id }) => id === wanted)
  const add = (messageID: string, text: string): void => {
    // A message's own id may end like a summary's.
    const own = find(messageID) ?? find(sourceID(messageID))
    // Another plugin may have taken the message out of the request.
    const target = own ?? sent.findLast(isUsers)
    // OpenCode 2 joins the texts of a message without anything between them.
    if (target) target.content.push({ type: "text", text: `\n\n${text}` })
    else sent.push({ role: "user", content: [{ type: "text", text }] })
  }

  return {
    messages,
    apply: () => {
      for (const { info, parts } of messages)
        for (const part of parts) {
          if (part.type !== "text" || carried.has(part)) continue
          carried.add(part)
          add(info.id, part.text)
        }
      const newest = messages.findLast(({ info }) => info.role === "user")?.info
      const switches = newest?.role === "user" ? (newest.tools ?? {}) : {}
      for (const [name, isOn] of Object.entries(switches)) if (!isOn) delete tools[name]
    },
  }
}
