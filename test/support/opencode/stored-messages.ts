import type { AssistantMessage, Part, ToolState, UserMessage } from "@opencode-ai/sdk"
import type { StoredMessage } from "../../../.opencode/baton/host/sessions.ts"

export const IDS = { id: "prt_1", sessionID: "ses_1", messageID: "msg_1" }

export const textPart = (text: string, extra: { synthetic?: boolean; ignored?: boolean } = {}): Part => ({
  ...IDS,
  type: "text",
  text,
  ...extra,
})

export const compactionPart = (): Part => ({ ...IDS, type: "compaction", auto: true })

export const toolPart = (tool: string, state: ToolState, callID = "call_1"): Part => ({
  ...IDS,
  type: "tool",
  callID,
  tool,
  state,
})

/** State of a successful tool call. */
export const completedTool = (title: string, output = "", input: Record<string, unknown> = {}): ToolState => ({
  status: "completed",
  input,
  output,
  title,
  metadata: {},
  time: { start: 1, end: 2 },
})

export const userMessage = (parts: Part[], id = "msg_u"): StoredMessage => {
  const model = { providerID: "p", modelID: "m" }
  const info: UserMessage = { id, sessionID: "ses_1", role: "user", time: { created: 1 }, agent: "build", model }
  return { info, parts }
}

/** A user's message of one text. */
export const userSays = (text: string, id?: string, extra?: { synthetic?: boolean }): StoredMessage =>
  userMessage([textPart(text, extra)], id)

/** The message that asks for a compaction. */
export const asksToCompact = (id?: string): StoredMessage => userMessage([compactionPart()], id)

/** An assistant's message as OpenCode stores it; `extra` makes it a summary, finished or failed. */
export const assistantMessage = (
  text?: string,
  extra: Partial<AssistantMessage> = {},
  { id = "msg_a", parentID = "msg_u" } = {},
): StoredMessage => ({
  info: {
    id,
    sessionID: "ses_1",
    role: "assistant",
    time: { created: 1 },
    parentID,
    modelID: "m",
    providerID: "p",
    mode: "build",
    path: { cwd: "/", root: "/" },
    cost: 0,
    tokens: { input: 0, output: 0, reasoning: 0, cache: { read: 0, write: 0 } },
    ...extra,
  },
  parts: text === undefined ? [] : [textPart(text)],
})
