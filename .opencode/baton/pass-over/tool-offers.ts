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
