import type { AgentInfo } from "../../host/child-sessions.ts"
import type { PermissionRule } from "../../host/permissions.ts"
import type { AgentAndModel } from "../../host/sessions.ts"
import type { BeginPass } from "../store/passes.ts"

/** A pass that may begin: what its child needs beside the request. */
export type Prepared = BeginPass & {
  readonly subagent: AgentInfo
  /** Rules of the calling agent, then of its session. */
  readonly originatorRules: readonly PermissionRule[]
  readonly model: AgentAndModel["model"] | undefined
  /** The pass that the originator itself works on. */
  readonly parentPass: string | undefined
  /** For the originator: what of its override was reduced. */
  readonly note: string | undefined
}
