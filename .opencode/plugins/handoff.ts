import type { Plugin } from "@opencode-ai/plugin"
import { openCore } from "../baton/core/core.ts"
import { entryOf } from "../baton/core/entry.ts"
import { createHandoffHooks } from "../baton/handoff/hooks.ts"

/** `/handoff`, handoff_session and read_session: a new session starts with the right context; see docs/handoff.md. */
export const HandoffPlugin: Plugin = async (input) => createHandoffHooks(openCore(input))

export default entryOf("handoff", HandoffPlugin)
