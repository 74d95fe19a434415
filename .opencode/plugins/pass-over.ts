import type { Plugin } from "@opencode-ai/plugin"
import { openCore } from "../baton/core/core.ts"
import { entryOf } from "../baton/core/entry.ts"
import { createPassOverHooks } from "../baton/pass-over/hooks.ts"

/** Hands work to another agent and gets a structured result back; see docs/pass-over.md. */
export const PassOver: Plugin = async (input) => createPassOverHooks(openCore(input))

export default entryOf("pass-over", PassOver)
