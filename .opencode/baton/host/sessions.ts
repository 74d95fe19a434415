import type { PluginInput } from "@opencode-ai/plugin"
import type { Message, Part, Todo } from "@opencode-ai/sdk"
import { type Answer, createClientCall, isRecord, malformed } from "./client-call.ts"

export type { Answer } from "./client-call.ts"

export type StoredMessage = { info: Message; parts: Part[] }

/** One page of a session's messages, oldest first; `older` is the cursor of the page before it, where there is one. */
export type MessagePage = { messages: StoredMessage[]; older?: string }

/** `projectID` is "global" outside git, whatever the folder; `time.created` is in epoch ms. */
export type SessionInfo = {
  id: string
  title: string
  projectID: string
  directory: string
  parentID?: string
  time?: { created?: number }
}

/** Which agent and model a message was for. */
export type MessageTarget = { agent: string; model: { providerID: string; modelID: string } }

/** OpenCode's sessions as the features see them. No call throws; each has its deadline. */
export type Sessions = {
  /** The newest `limit` messages (or the newest before `cursor`), oldest first. */
  messages(sessionID: string, limit: number, cursor?: string): Promise<Answer<MessagePage>>
  info(sessionID: string): Promise<Answer<SessionInfo>>
  /** Creates a root session. @returns its id */
  create(title: string): Promise<Answer<string>>
  /** Stores a user's message and starts no model. Plugins see it as they see any other. */
  store(sessionID: string, text: string, target: MessageTarget | undefined): Promise<Answer<undefined>>
  /** The parent's id, or undefined for a root session. */
  parent(sessionID: string): Promise<Answer<string | undefined>>
  todos(sessionID: string): Promise<Answer<Todo[]>>
}

const CALL_DEADLINE_MS = 1_000

export const isStoredMessage = (value: unknown): value is StoredMessage =>
  isRecord(value) &&
  isRecord(value.info) &&
  typeof value.info.id === "string" &&
  typeof value.info.role === "string" &&
  Array.isArray(value.parts) &&
  value.parts.every((part) => isRecord(part) && typeof part.type === "string")

export const isSessionInfo = (value: unknown): value is SessionInfo =>
  isRecord(value) &&
  [value.id, value.title, value.projectID, value.directory].every((field) => typeof field === "string")

const isTodo = (value: unknown): value is Todo =>
  isRecord(value) && typeof value.content === "string" && typeof value.status === "string"

/**
 * Wraps the client's session calls: checks the shape of what came back, and gives each call `deadlineMs` (default 1,000).
 */
export const createSessions = (
  client: Pick<PluginInput["client"], "session">,
  { deadlineMs = CALL_DEADLINE_MS }: { deadlineMs?: number } = {},
): Sessions => {
  const call = createClientCall(deadlineMs)
  return {
    messages: (sessionID, limit, cursor) => {
      // `before` exists on the server from 1.14 on but not in the SDK's types.
      const query = { limit, ...(cursor === undefined ? {} : { before: cursor }) }
      return call(
        "session.messages",
        () => client.session.messages({ path: { id: sessionID }, query }),
        (data, response) => {
          if (!Array.isArray(data) || !data.every(isStoredMessage)) return malformed("session.messages", data)
          const older = response?.headers?.get("X-Next-Cursor")
          return { kind: "answer", value: older ? { messages: data, older } : { messages: data } }
        },
      )
    },
    info: (sessionID) =>
      call(
        "session.get",
        () => client.session.get({ path: { id: sessionID } }),
        (data) => (isSessionInfo(data) ? { kind: "answer", value: data } : malformed("session.get", data)),
      ),
    create: (title) =>
      call(
        "session.create",
        () => client.session.create({ body: { title } }),
        (data) => (isSessionInfo(data) ? { kind: "answer", value: data.id } : malformed("session.create", data)),
      ),
    store: (sessionID, text, target) =>
      call(
        "session.prompt",
        () =>
          client.session.prompt({
            path: { id: sessionID },
            body: { ...target, noReply: true, parts: [{ type: "text", text }] },
          }),
        () => ({ kind: "answer", value: undefined }),
      ),
    parent: (sessionID) =>
      call(
        "session.get",
        () => client.session.get({ path: { id: sessionID } }),
        (data) => {
          if (!isRecord(data) || typeof data.id !== "string") return malformed("session.get", data)
          return { kind: "answer", value: typeof data.parentID === "string" ? data.parentID : undefined }
        },
      ),
    todos: (sessionID) =>
      call(
        "session.todo",
        () => client.session.todo({ path: { id: sessionID } }),
        (data) => {
          if (!Array.isArray(data) || !data.every(isTodo)) return malformed("session.todo", data)
          return { kind: "answer", value: data }
        },
      ),
  }
}
