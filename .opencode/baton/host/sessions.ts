import type { PluginInput } from "@opencode-ai/plugin"
import type { Message, Part, Todo } from "@opencode-ai/sdk"
import { withDeadline } from "./deadline.ts"
import { describeError } from "./log.ts"

export type StoredMessage = { info: Message; parts: Part[] }

/** One page of a session's messages, oldest first; `older` is the cursor of the page before it, where there is one. */
export type MessagePage = { messages: StoredMessage[]; older?: string }

/** `missing`: OpenCode answered that there is no such session. */
export type Answer<T> = { kind: "answer"; value: T } | { kind: "failed"; reason: string; missing?: boolean }

/** `projectID` is "global" outside git, whatever the folder. */
export type SessionInfo = { id: string; title: string; projectID: string; directory: string; parentID?: string }

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

const isRecord = (value: unknown): value is Record<string, unknown> => typeof value === "object" && value !== null

const isStoredMessage = (value: unknown): value is StoredMessage =>
  isRecord(value) &&
  isRecord(value.info) &&
  typeof value.info.id === "string" &&
  typeof value.info.role === "string" &&
  Array.isArray(value.parts) &&
  value.parts.every((part) => isRecord(part) && typeof part.type === "string")

const isSessionInfo = (value: unknown): value is SessionInfo =>
  isRecord(value) &&
  [value.id, value.title, value.projectID, value.directory].every((field) => typeof field === "string")

const isTodo = (value: unknown): value is Todo =>
  isRecord(value) && typeof value.content === "string" && typeof value.status === "string"

const malformed = (what: string, received: unknown): Answer<never> => {
  const shown = JSON.stringify(received)?.slice(0, 80) ?? String(received)
  return { kind: "failed", reason: `${what} answered in an unknown shape: ${shown}` }
}

/**
 * Wraps the client's session calls: unwraps `{data, error}` (errors do not throw in the 1.x SDK), checks the shape of
 * what came back, and gives each call `deadlineMs` (default 1,000).
 */
export const createSessions = (
  client: Pick<PluginInput["client"], "session">,
  { deadlineMs = CALL_DEADLINE_MS }: { deadlineMs?: number } = {},
): Sessions => {
  const call = async <T>(
    what: string,
    work: () => Promise<{ data?: unknown; error?: unknown; response?: Response }>,
    read: (data: unknown, response: Response | undefined) => Answer<T>,
  ): Promise<Answer<T>> => {
    const outcome = await withDeadline(
      Promise.resolve().then(() => work()),
      deadlineMs,
    )
    if (outcome.kind === "late") return { kind: "failed", reason: `${what} did not answer within ${deadlineMs} ms` }
    if (outcome.kind === "failed") return { kind: "failed", reason: `${what} failed: ${describeError(outcome.error)}` }
    if (!isRecord(outcome.value)) return malformed(what, outcome.value)
    const { data, error, response } = outcome.value
    if (error !== undefined) {
      const reason = `${what} failed: ${JSON.stringify(error).slice(0, 200)}`
      return { kind: "failed", reason, ...(response?.status === 404 ? { missing: true } : {}) }
    }
    return read(data, response)
  }
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
