import type { Plugin } from "@opencode-ai/plugin"
import { openCore } from "../baton/core/core.ts"
import { entryOf } from "../baton/core/entry.ts"
import { createLearningHooks } from "../baton/learning/hooks.ts"

/** Carries the user's corrections into the next session; see docs/learning.md. */
export const SessionLearning: Plugin = async (input) => createLearningHooks(openCore(input))

export default entryOf("session-learning", SessionLearning)
