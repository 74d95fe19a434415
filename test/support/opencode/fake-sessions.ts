import type { PermissionRule } from "../../../.opencode/baton/host/permissions.ts"
import type { Result, SessionInfo, Sessions, StoredMessage } from "../../../.opencode/baton/host/sessions.ts"

export type FakeSession = {
  info?: Partial<SessionInfo>
  messages?: StoredMessage[]
  permission?: readonly PermissionRule[]
}

/**
 * OpenCode's sessions in memory. Without cursors they answer as 1.2.15 does: only the newest messages, and no older ones.
 *
 * @param sessions by id; `create`, `store` and `start` add to them
 */
export const createFakeSessions = (
  sessions: Map<string, FakeSession>,
  { cursors = true }: { cursors?: boolean } = {},
): Sessions & { calls: { limit: number; cursor?: string }[] } => {
  const calls: { limit: number; cursor?: string }[] = []
  const send: Sessions["store"] = async (sessionID, text) => {
    const part = { id: "prt_1", sessionID, messageID: "msg_1", type: "text" as const, text }
    const model = { providerID: "p", modelID: "m" }
    const info = { id: "msg_1", sessionID, role: "user" as const, time: { created: 1 }, agent: "build", model }
    sessions.get(sessionID)?.messages?.push({ info, parts: [part] })
    return { kind: "ok", value: undefined }
  }
  const missing: Result<never> = { kind: "failed", reason: "session.get failed: not found", missing: true }
  const messageOf = (sessionID: string, messageID: string) =>
    sessions.get(sessionID)?.messages?.find(({ info }) => info.id === messageID)
  return {
    calls,
    messages: async (sessionID, limit, cursor) => {
      calls.push({ limit, ...(cursor === undefined ? {} : { cursor }) })
      const session = sessions.get(sessionID)
      if (!session) return missing
      const all = session.messages ?? []
      const end = cursor === undefined ? all.length : Number(cursor)
      const start = Math.max(0, end - limit)
      const messages = all.slice(start, end)
      return {
        kind: "ok",
        value: cursors && start > 0 ? { messages, older: String(start) } : { messages },
      }
    },
    message: async (sessionID, messageID) => {
      const value = messageOf(sessionID, messageID)
      return value ? { kind: "ok", value } : missing
    },
    info: async (sessionID) => {
      const session = sessions.get(sessionID)
      if (!session) return missing
      const info = { id: sessionID, title: `Title of ${sessionID}`, projectID: "p", directory: "/project" }
      return { kind: "ok", value: { ...info, ...session.info } }
    },
    parent: async (sessionID) => ({ kind: "ok", value: sessions.get(sessionID)?.info?.parentID }),
    todos: async () => ({ kind: "ok", value: [] }),
    create: async (title, permission = []) => {
      const id = `ses_new${sessions.size}`
      sessions.set(id, { info: { title }, messages: [], permission })
      return { kind: "ok", value: id }
    },
    rename: async (sessionID, title) => {
      const session = sessions.get(sessionID)
      if (!session) return missing
      session.info = { ...session.info, title }
      return { kind: "ok", value: undefined }
    },
    store: send,
    start: send,
  }
}
