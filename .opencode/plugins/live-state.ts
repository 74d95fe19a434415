import type { Plugin } from "@opencode-ai/plugin"
import { openCore } from "../baton/core/core.ts"
import { entryOf } from "../baton/core/entry.ts"
import { createLiveStateHooks } from "../baton/live-state/hooks.ts"

/** Streams the session's state to a writer that keeps a statefile for observers; see docs/live-state.md. */
export const LiveState: Plugin = async (input) => createLiveStateHooks(openCore(input))

export default entryOf("live-state", LiveState)
