import type { PluginInput } from "@opencode-ai/plugin"
import type { Message, Part, Todo, UserMessage } from "@opencode-ai/sdk"
import { withDeadline } from "./async.ts"
import { describeError } from "./log.ts"
import type { PermissionRule } from "./permissions.ts"
import { isRecord } from "./schema.ts"
import { cutText } from "./text.ts"

/** `missing`: OpenCode answered that it does not exist. */
export type Result<T> = { kind: "ok"; value: T } | { kind: "failed"; reason: string; missing?: boolean }

/** @returns undefined for an answer in an unknown shape */
type Read<T> = (data: unknown, response: Response | undefined) => { readonly value: T } | undefined

/** Ignores the content of an answer. */
export const readNothing: Read<undefined> = () => ({ value: undefined })

/** Reads an answer that is taken as it is. */
export const readAs =
  <T>(isWanted: (data: unknown) => data is T): Read<T> =>
  (data) =>
    isWanted(data) ? { value: data } : undefined

/** Makes one call to OpenCode and reads the answer. Never throws. */
type ClientCall = <T>(
  what: string,
  work: () => Promise<{ data?: unknown; error?: unknown; response?: Response }>,
  read: Read<T>,
) => Promise<Result<T>>

const unexpectedShape = (what: string, received: unknown): Result<never> => {
  const shown = cutText(JSON.stringify(received) ?? String(received), 80)
  return { kind: "failed", reason: `${what} answered in an unknown shape: ${shown}` }
}

const readRaw = <T>(what: string, raw: unknown, read: Read<T>): Result<T> => {
  if (!isRecord(raw)) return unexpectedShape(what, raw)
  const { data, error } = raw
  const response = raw.response instanceof Response ? raw.response : undefined
  if (error === undefined) {
    const found = read(data, response)
    return found ? { kind: "ok", value: found.value } : unexpectedShape(what, data)
  }
  const reason = `${what} failed: ${cutText(JSON.stringify(error), 200)}`
  return { kind: "failed", reason, ...(response?.status === 404 ? { missing: true } : {}) }
}

/**
 * Unwraps `{data, error}` (errors do not throw in the 1.x SDK) and gives each call a deadline.
 *
 * @param deadlineMs `Number.POSITIVE_INFINITY` for a call that lasts as long as a model works
 */
export const createClientCall =
  (deadlineMs: number): ClientCall =>
  async (what, work, read) => {
    // Turns an error that the client throws synchronously into a rejection.
    const answered = Promise.resolve().then(async () => readRaw(what, await work(), read))
    const outcome = await withDeadline(answered, deadlineMs)
    if (outcome.kind === "late") return { kind: "failed", reason: `${what} did not answer within ${deadlineMs} ms` }
    if (outcome.kind === "failed") return { kind: "failed", reason: `${what} failed: ${describeError(outcome.error)}` }
    return outcome.value
  }

export type StoredMessage = { info: Message; parts: Part[] }

/** One page of a session's messages, oldest first; `older` is the cursor of the previous page, if there is one. */
export type MessagePage = { messages: StoredMessage[]; older?: string }

/**
 * `projectID` is "global" for every folder outside git; `time.created` is in epoch ms. `revert`: what the user undid; OpenCode
 * hides the message with this id and all later ones, with `partID` only what follows this part.
 */
export type SessionInfo = {
  id: string
  title: string
  projectID: string
  directory: string
  parentID?: string
  time?: { created?: number }
  revert?: { messageID: string; partID?: string }
}

export type AgentAndModel = { agent: string; model: { providerID: string; modelID: string } }

/** Access to OpenCode's sessions. No call throws; each has a deadline. */
export type Sessions = {
  /** The newest `limit` messages (or the newest before `cursor`), oldest first. */
  messages(sessionID: string, limit: number, cursor?: string): Promise<Result<MessagePage>>
  /** One message, also one that is hidden by a revert. */
  message(sessionID: string, messageID: string): Promise<Result<StoredMessage>>
  info(sessionID: string): Promise<Result<SessionInfo>>
  /** Creates a root session. @param permission rules of the session's own @returns its id */
  create(title: string, permission?: readonly PermissionRule[]): Promise<Result<string>>
  rename(sessionID: string, title: string): Promise<Result<undefined>>
  /** Stores a user's message without starting a model. Plugins see it like any other. */
  store(sessionID: string, text: string, target: Partial<AgentAndModel> | undefined): Promise<Result<undefined>>
  /** Sends a user's message and does not wait for its turn. OpenCode answers before it has looked at agent and model. */
  start(sessionID: string, text: string, target: Partial<AgentAndModel> | undefined): Promise<Result<undefined>>
  /** The parent's id, or undefined for a root session. */
  parent(sessionID: string): Promise<Result<string | undefined>>
  todos(sessionID: string): Promise<Result<Todo[]>>
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
  [value.id, value.title, value.projectID, value.directory].every((field) => typeof field === "string") &&
  (!isRecord(value.revert) || typeof value.revert.messageID === "string")

const isTodo = (value: unknown): value is Todo =>
  isRecord(value) && typeof value.content === "string" && typeof value.status === "string"

const areTodos = (value: unknown): value is Todo[] => Array.isArray(value) && value.every(isTodo)

/** The id of a session that was created. */
export const readSessionID: Read<string> = (data) => (isSessionInfo(data) ? { value: data.id } : undefined)

/** Wraps the client's session calls: checks the shape of each answer, and gives each call `deadlineMs` (default 1,000). */
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
          if (!Array.isArray(data) || !data.every(isStoredMessage)) return undefined
          const older = response?.headers?.get("X-Next-Cursor")
          return { value: older ? { messages: data, older } : { messages: data } }
        },
      )
    },
    message: async (sessionID, messageID) => {
      const path = { id: sessionID, messageID }
      const answer = await call("session.message", () => client.session.message({ path }), readAs(isStoredMessage))
      // 1.2.15 answers 500 for a message that does not exist.
      return answer.kind === "failed" && answer.reason.includes("Message not found")
        ? { ...answer, missing: true }
        : answer
    },
    info: (sessionID) =>
      call("session.get", () => client.session.get({ path: { id: sessionID } }), readAs(isSessionInfo)),
    create: (title, permission = []) => {
      // OpenCode takes `permission` on all supported versions; the SDK's types do not have it.
      const body = { title, ...(permission.length === 0 ? {} : { permission: [...permission] }) }
      return call("session.create", () => client.session.create({ body }), readSessionID)
    },
    rename: (sessionID, title) =>
      call("session.update", () => client.session.update({ path: { id: sessionID }, body: { title } }), readNothing),
    store: (sessionID, text, target) =>
      call(
        "session.prompt",
        () =>
          client.session.prompt({
            path: { id: sessionID },
            body: { ...target, noReply: true, parts: [{ type: "text", text }] },
          }),
        readNothing,
      ),
    start: (sessionID, text, target) =>
      call(
        "session.promptAsync",
        () =>
          client.session.promptAsync({
            path: { id: sessionID },
            body: { ...target, parts: [{ type: "text", text }] },
          }),
        readNothing,
      ),
    parent: (sessionID) =>
      call(
        "session.get",
        () => client.session.get({ path: { id: sessionID } }),
        (data) => {
          if (!isRecord(data) || typeof data.id !== "string") return undefined
          return { value: typeof data.parentID === "string" ? data.parentID : undefined }
        },
      ),
    todos: (sessionID) =>
      call("session.todo", () => client.session.todo({ path: { id: sessionID } }), readAs(areTodos)),
  }
}

/** A page older than the one before; its messages are oldest first. */
type PageBack = { readonly messages: readonly StoredMessage[]; readonly isOldest: boolean }

/** The factor by which the limit grows if there are no cursors. */
const WIDENING = 10

/**
 * Reads a session's messages page by page, the newest page first. Ends after the oldest page, after a failure, or when
 * `shouldStop` returns true, which is called before each page.
 *
 * OpenCode without cursors (1.2.15) returns only the newest messages: each page then asks for ten times as many and leaves
 * out those of the pages before.
 */
export async function* messagePages(
  sessions: Pick<Sessions, "messages">,
  sessionID: string,
  { size, shouldStop }: { size: number; shouldStop: () => boolean },
): AsyncGenerator<Result<PageBack>, void> {
  let cursor: string | undefined
  let limit = size
  let oldestID: string | undefined
  while (!shouldStop()) {
    const answer = await sessions.messages(sessionID, limit, cursor)
    if (answer.kind === "failed") {
      yield answer
      return
    }
    const { messages, older } = answer.value
    const known = messages.findIndex(({ info }) => info.id === oldestID)
    const isOldest = older === undefined && (cursor !== undefined || messages.length < limit)
    yield { kind: "ok", value: { messages: known < 0 ? messages : messages.slice(0, known), isOldest } }
    if (isOldest) return
    oldestID = messages[0]?.info.id
    cursor = older
    if (older === undefined) limit *= WIDENING
  }
}

const NEWEST_MESSAGES = 50

/**
 * Agent and model of a session's last real message. A prompt without both would change the session's own permanently.
 *
 * @returns undefined when the messages cannot be read, or there are none
 */
export const findAgentAndModel = async (
  sessions: Pick<Sessions, "messages">,
  sessionID: string,
): Promise<AgentAndModel | undefined> => {
  const newest = await sessions.messages(sessionID, NEWEST_MESSAGES)
  if (newest.kind === "failed") return undefined
  const infos = newest.value.messages.map(({ info }) => info)
  const user = infos.findLast((info) => info.role === "user")
  if (user) {
    const { providerID, modelID } = user.model
    return { agent: user.agent, model: { providerID, modelID } }
  }
  // In a very long turn the user message is further back, but each step has the same agent and model.
  const step = infos.findLast((info) => info.role === "assistant")
  return step && { agent: step.mode, model: { providerID: step.providerID, modelID: step.modelID } }
}

export type ModelName = UserMessage["model"]

/** OpenCode itself waits this long before it makes a request. */
const CONFIG_DEADLINE_MS = 2_500

/** Limits in tokens; undefined where OpenCode does not know them. */
export type ModelInfo = ModelName & {
  readonly context?: number | undefined
  readonly input?: number | undefined
  readonly output?: number | undefined
}

const positive = (value: unknown): number | undefined => (typeof value === "number" && value > 0 ? value : undefined)

const modelsIn = (data: Record<string, unknown>): ModelInfo[] => {
  const providers = Array.isArray(data.providers) ? data.providers.filter(isRecord) : []
  return providers.flatMap(({ id, models }) =>
    Object.entries(isRecord(models) ? models : {}).map(([modelID, model]) => {
      const limit = isRecord(model) && isRecord(model.limit) ? model.limit : {}
      const [context, input, output] = [limit.context, limit.input, limit.output].map(positive)
      return { providerID: String(id), modelID, context, input, output }
    }),
  )
}

/** Lists the models that can be used. OpenCode loads them for each request anyway, so this adds little time. */
export const readModels = (client: Pick<PluginInput["client"], "config">): Promise<Result<ModelInfo[]>> =>
  createClientCall(CONFIG_DEADLINE_MS)(
    "config.providers",
    () => client.config.providers(),
    (data) => (isRecord(data) ? { value: modelsIn(data) } : undefined),
  )

/** Lists OpenCode's agents, unchecked. */
export const readAgents = (client: Pick<PluginInput["client"], "app">): Promise<Result<unknown[]>> =>
  createClientCall(CALL_DEADLINE_MS)("app.agents", () => client.app.agents(), readAs(Array.isArray))

export const isSameModel = (one: ModelName, other: ModelName): boolean =>
  one.providerID === other.providerID && one.modelID === other.modelID

/**
 * The context size of a model in tokens, for a request whose parameters are not known yet; undefined if OpenCode does not
 * know it.
 */
export const createModelContext =
  (client: Pick<PluginInput["client"], "config">) =>
  async (model: ModelName): Promise<number | undefined> => {
    const answer = await readModels(client)
    return answer.kind === "ok" ? answer.value.find((each) => isSameModel(each, model))?.context : undefined
  }
