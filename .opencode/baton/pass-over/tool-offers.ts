import type { StoredMessage } from "../host/sessions.ts"
import { type Limits, refusedTools } from "./child-permission.ts"
import { APPLY_TOOL, REJECT_TOOL, RETURN_TOOL, STATUS_TOOL } from "./tool-names.ts"

/** What a session can use: only who works on a pass returns, and only who made one has results to decide on. */
export type SessionRole = {
  readonly worksOnPass: boolean
  readonly hasPasses: boolean
  /** Of the pass that the session, or one above it, works on. */
  readonly limits: Limits | undefined
}

export const hiddenTools = ({ worksOnPass, hasPasses, limits }: SessionRole): string[] => [
  ...(limits ? refusedTools(limits) : []),
  ...(worksOnPass ? [] : [RETURN_TOOL]),
  ...(hasPasses ? [] : [APPLY_TOOL, REJECT_TOOL, STATUS_TOOL]),
]

/** Takes tools out of one request: OpenCode leaves out what the newest user message says false to (docs/adr/0005). */
export const hideTools = (messages: readonly StoredMessage[], tools: readonly string[]): void => {
  const newest = messages.findLast(({ info }) => info.role === "user")?.info
  if (newest?.role === "user" && tools.length > 0)
    newest.tools = { ...newest.tools, ...Object.fromEntries(tools.map((tool) => [tool, false])) }
}
