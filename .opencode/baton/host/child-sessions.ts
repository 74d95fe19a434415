import type { PluginInput } from "@opencode-ai/plugin"
import type { PermissionRule } from "./permissions.ts"
import { isRecord } from "./schema.ts"
import {
  type AgentAndModel,
  createClientCall,
  isSessionInfo,
  isStoredMessage,
  type Result,
  readAs,
  readNothing,
  readSessionID,
  type StoredMessage,
} from "./sessions.ts"

export type AgentInfo = {
  readonly name: string
  readonly description: string
  /** The system prompt; empty if the agent has none of its own. */
  readonly prompt: string
  readonly mode: "subagent" | "primary" | "all"
  readonly isHidden: boolean
  readonly permission: readonly PermissionRule[]
  readonly model?: AgentAndModel["model"] | undefined
}

/** A session's parent (undefined for a root session) and its own permission rules, without those of its agent. */
type ParentAndPermissions = { readonly parentID: string | undefined; readonly permission: readonly PermissionRule[] }

export type Prompt = {
  /** The agent's instructions; plugins treat them as a user's text. */
  readonly text?: string | undefined
  /** Text that is not the user's: files, earlier messages, a result. */
  readonly context?: string | undefined
  readonly agent: string
  readonly model?: AgentAndModel["model"] | undefined
}

/** Manages child sessions. No call throws; all but `prompt` have a deadline. */
export type ChildSessions = {
  /** @param permission takes precedence over the rules of the session's agent. @returns the session's id */
  create(child: { parentID: string; title: string; permission: readonly PermissionRule[] }): Promise<Result<string>>
  /** Resolves at the end of the turn with its last message, which may carry an error. */
  prompt(sessionID: string, prompt: Prompt): Promise<Result<StoredMessage>>
  /** Starts a turn without waiting for it. */
  start(sessionID: string, prompt: Prompt): Promise<Result<undefined>>
  abort(sessionID: string): Promise<Result<undefined>>
  children(sessionID: string): Promise<Result<string[]>>
  isBusy(sessionID: string): Promise<Result<boolean>>
  parentAndPermissions(sessionID: string): Promise<Result<ParentAndPermissions>>
  agents(): Promise<Result<AgentInfo[]>>
}

const ACTIONS: ReadonlySet<unknown> = new Set(["allow", "ask", "deny"])

const isRule = (value: unknown): value is PermissionRule =>
  isRecord(value) &&
  typeof value.permission === "string" &&
  typeof value.pattern === "string" &&
  ACTIONS.has(value.action)

const readRules = (value: unknown): readonly PermissionRule[] | undefined => {
  if (value === undefined || value === null) return []
  return Array.isArray(value) && value.every(isRule) ? value : undefined
}

const readModel = (value: unknown): { model?: AgentAndModel["model"] } =>
  isRecord(value) && typeof value.providerID === "string" && typeof value.modelID === "string"
    ? { model: { providerID: value.providerID, modelID: value.modelID } }
    : {}

const readAgent = (value: unknown): AgentInfo | undefined => {
  if (!isRecord(value) || typeof value.name !== "string") return undefined
  const permission = readRules(value.permission)
  const mode = value.mode === "subagent" || value.mode === "primary" ? value.mode : "all"
  if (!permission) return undefined
  const description = typeof value.description === "string" ? value.description : ""
  const prompt = typeof value.prompt === "string" ? value.prompt : ""
  return {
    name: value.name,
    description,
    prompt,
    mode,
    isHidden: value.hidden === true,
    permission,
    ...readModel(value.model),
  }
}

const toBody = ({ text, context, agent, model }: Prompt) => ({
  agent,
  ...(model ? { model } : {}),
  parts: [
    ...(text === undefined ? [] : [{ type: "text" as const, text }]),
    ...(context === undefined ? [] : [{ type: "text" as const, text: context, synthetic: true }]),
  ],
})

/** @param options `deadlineMs` applies to each call but `prompt` */
export const createChildSessions = (
  client: Pick<PluginInput["client"], "session" | "app">,
  { deadlineMs }: { deadlineMs: number },
): ChildSessions => {
  const call = createClientCall(deadlineMs)
  const wait = createClientCall(Number.POSITIVE_INFINITY)
  const { session } = client
  return {
    create: ({ parentID, title, permission }) => {
      // OpenCode takes `permission` on all supported versions; the SDK's types do not have it.
      const body = { parentID, title, permission: [...permission] }
      return call("session.create", () => session.create({ body }), readSessionID)
    },
    prompt: (sessionID, prompt) =>
      wait(
        "session.prompt",
        () => session.prompt({ path: { id: sessionID }, body: toBody(prompt) }),
        readAs(isStoredMessage),
      ),
    start: (sessionID, prompt) =>
      call(
        "session.promptAsync",
        () => session.promptAsync({ path: { id: sessionID }, body: toBody(prompt) }),
        readNothing,
      ),
    abort: (sessionID) => call("session.abort", () => session.abort({ path: { id: sessionID } }), readNothing),
    children: (sessionID) =>
      call(
        "session.children",
        () => session.children({ path: { id: sessionID } }),
        (data) => (Array.isArray(data) && data.every(isSessionInfo) ? { value: data.map(({ id }) => id) } : undefined),
      ),
    isBusy: (sessionID) =>
      call(
        "session.status",
        () => session.status(),
        (data) => {
          if (!isRecord(data)) return undefined
          // Idle sessions are not listed.
          const status = data[sessionID]
          return { value: isRecord(status) && status.type !== "idle" }
        },
      ),
    parentAndPermissions: (sessionID) =>
      call(
        "session.get",
        () => session.get({ path: { id: sessionID } }),
        (data) => {
          const permission = isRecord(data) ? readRules(data.permission) : undefined
          if (!isRecord(data) || typeof data.id !== "string" || !permission) return undefined
          const parentID = typeof data.parentID === "string" ? data.parentID : undefined
          return { value: { parentID, permission } }
        },
      ),
    agents: () =>
      call(
        "app.agents",
        () => client.app.agents(),
        (data) => {
          const agents = Array.isArray(data) ? data.map(readAgent) : []
          const known = agents.filter((agent) => agent !== undefined)
          return known.length === 0 || known.length < agents.length ? undefined : { value: known }
        },
      ),
  }
}
