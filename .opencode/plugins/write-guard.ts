import type { Plugin } from "@opencode-ai/plugin"
import { openCore } from "../baton/core/core.ts"
import { entryOf } from "../baton/core/entry.ts"
import { createWriteGuardHooks } from "../baton/write-guard/hooks.ts"

/** Keeps an agent's editing tools from Baton's own files; see docs/security.md. */
export const WriteGuard: Plugin = async (input) => createWriteGuardHooks(openCore(input))

export default entryOf("write-guard", WriteGuard)
