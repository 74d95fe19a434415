import { mayUseTool } from "./child-permission.ts"
import type { PassSession } from "./pass-sessions.ts"
import { redirectCall } from "./worktree/redirect.ts"

export type ToolVerdict =
  /** With these of its arguments changed. */
  | { readonly kind: "go"; readonly changes: Readonly<Record<string, unknown>> }
  /** A sentence for the model. */
  | { readonly kind: "refused"; readonly reason: string }

export const PASS_IS_OVER = "Use no more tools and end your turn: the pass is over."

/** Tools that wait for a person, whom a subagent must not keep. */
const ASKING = "question"

/** Whether and how a tool may be used in a session that works on a pass, or below one. Pure. */
export const judgeToolCall = (
  pass: PassSession,
  { tool, args, isOwn }: { tool: string; args: Readonly<Record<string, unknown>>; isOwn: boolean },
): ToolVerdict => {
  if (pass.isOver) return { kind: "refused", reason: PASS_IS_OVER }
  if (isOwn && pass.hasReturned)
    return { kind: "refused", reason: "The result has been returned. Use no more tools and end your turn." }
  if (tool === ASKING)
    return { kind: "refused", reason: "Nobody can be asked from here: decide, or return with what you need to know." }
  if (!mayUseTool(tool, pass.limits)) {
    const limit = pass.limits.can_run_tools
      ? "change files (can_modify_files)"
      : "use tools but reading (can_run_tools)"
    return {
      kind: "refused",
      reason: `The tool ${tool} is refused: this pass may not ${limit}. Return what you can tell.`,
    }
  }
  if (!pass.place) return { kind: "go", changes: {} }
  const redirection = redirectCall(tool, args, pass.place)
  if (redirection.kind === "refused") return redirection
  return { kind: "go", changes: redirection.kind === "redirected" ? redirection.args : {} }
}
