import type { PluginInput } from "@opencode-ai/plugin"
import { isRecord } from "./schema.ts"
import { createClientCall, readNothing } from "./sessions.ts"

export type PermissionAnswer = "once" | "always" | "reject"

type Post = (options: {
  url: string
  path: Record<string, string>
  body?: unknown
  headers: Record<string, string>
}) => Promise<{ data?: unknown; error?: unknown; response?: Response }>

const CALL_DEADLINE_MS = 2_000

export type Requests = ReturnType<typeof createRequests>

/** Answers what OpenCode asks a person. No call throws; each has a deadline. */
export const createRequests = (client: Pick<PluginInput["client"], "postSessionIdPermissionsPermissionId">) => {
  const call = createClientCall(CALL_DEADLINE_MS)
  /** The client that plugins get has no calls for questions, but the one below it sends any request. */
  const post: Post = (options) => {
    const raw: unknown = Reflect.get(client, "_client")
    if (!isRecord(raw) || typeof raw.post !== "function") throw new Error("OpenCode's client sends no other requests")
    return raw.post(options)
  }
  const headers = { "Content-Type": "application/json" }
  return {
    answerPermission: (id: string, permissionID: string, response: PermissionAnswer) =>
      call(
        "permission.respond",
        () => client.postSessionIdPermissionsPermissionId({ path: { id, permissionID }, body: { response } }),
        readNothing,
      ),
    /** @param answers of each question of the request, the chosen labels or a text */
    answerQuestion: (id: string, answers: readonly (readonly string[])[]) =>
      call(
        "question.reply",
        () => post({ url: "/question/{id}/reply", path: { id }, body: { answers }, headers }),
        readNothing,
      ),
    rejectQuestion: (id: string) =>
      call("question.reject", () => post({ url: "/question/{id}/reject", path: { id }, headers }), readNothing),
  }
}
