import type { Plugin } from "@opencode-ai/plugin"
import { createPassOverHooks } from "../baton/pass-over/hooks.ts"

/** Hands work to another agent and gets a structured result back; see docs/pass-over.md. */
export const PassOver: Plugin = async (input) => createPassOverHooks(input)
