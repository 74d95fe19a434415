import type { MessageTarget, Sessions } from "./sessions.ts"

const NEWEST_MESSAGES = 50

/**
 * Agent and model of a session's last real message: a prompt without both would switch the session's for good.
 *
 * @returns undefined when the messages cannot be read, or there are none
 */
export const findMessageTarget = async (
  sessions: Pick<Sessions, "messages">,
  sessionID: string,
): Promise<MessageTarget | undefined> => {
  const newest = await sessions.messages(sessionID, NEWEST_MESSAGES)
  if (newest.kind === "failed") return undefined
  const infos = newest.value.messages.map(({ info }) => info)
  const user = infos.findLast((info) => info.role === "user")
  if (user) {
    const { providerID, modelID } = user.model
    return { agent: user.agent, model: { providerID, modelID } }
  }
  // A turn of very many steps: its user message is further back, but each step tells the same.
  const step = infos.findLast((info) => info.role === "assistant")
  return step && { agent: step.mode, model: { providerID: step.providerID, modelID: step.modelID } }
}
