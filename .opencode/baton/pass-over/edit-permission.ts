import type { ToolContext } from "@opencode-ai/plugin"
import type { ChildSessions } from "../host/child-sessions.ts"
import { askUser } from "./ask-user.ts"
import { evaluate } from "./child-permission.ts"

export type MayWrite = { readonly kind: "granted" } | { readonly kind: "refused"; readonly reason: string }

export type EditPermissionDeps = { readonly childSessions: Pick<ChildSessions, "agents" | "standing"> }

const NOT_WITHOUT_RULE = "this OpenCode cannot ask you from here, and no rule of yours allows it"

/** Whether files may be written for an agent in a session. @param patterns paths relative to the worktree */
export const createEditPermission = ({ childSessions }: EditPermissionDeps) => {
  /** By the rules alone: nobody can be asked. */
  const judge = async (patterns: readonly string[], sessionID: string, agent: string): Promise<MayWrite> => {
    const [agents, own] = await Promise.all([childSessions.agents(), childSessions.standing(sessionID)])
    if (agents.kind === "failed") return { kind: "refused", reason: agents.reason }
    if (own.kind === "failed") return { kind: "refused", reason: own.reason }
    const rules = [...(agents.value.find(({ name }) => name === agent)?.permission ?? []), ...own.value.permission]
    const isAllowed = patterns.every((path) => evaluate(rules, "edit", path) === "allow")
    return isAllowed ? { kind: "granted" } : { kind: "refused", reason: NOT_WITHOUT_RULE }
  }

  return async (
    patterns: readonly string[],
    passID: string,
    { sessionID, agent, ask }: Pick<ToolContext, "sessionID" | "agent" | "ask">,
  ): Promise<MayWrite> => {
    const question = { permission: "edit", patterns: [...patterns], always: ["*"], metadata: { pass_over_id: passID } }
    const asked = await askUser(ask, question)
    return asked.kind === "unable" ? judge(patterns, sessionID, agent) : asked
  }
}

export type EditPermission = ReturnType<typeof createEditPermission>
