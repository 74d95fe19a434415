import type { Plugin } from "@opencode-ai/plugin"
import { createCompactionHooks } from "../baton/compaction/hooks.ts"
import { openCore } from "../baton/core/core.ts"
import { entryOf } from "../baton/core/entry.ts"

/** Keeps a session's task through every compaction; see docs/compaction.md. */
export const CompactionHandoff: Plugin = async (input) => createCompactionHooks(openCore(input))

export default entryOf("compaction-handoff", CompactionHandoff)
