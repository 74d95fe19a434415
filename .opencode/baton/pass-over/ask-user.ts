import type { ToolContext } from "@opencode-ai/plugin"
import { describeError } from "../host/log.ts"

export type Asked =
  /** By the user, or by a rule of the user's. */
  | { readonly kind: "granted" }
  | { readonly kind: "refused"; readonly reason: string }
  /** OpenCode 1.4 to 1.15.4 gives a plugin an effect that only OpenCode itself could run, so that nobody is asked. */
  | { readonly kind: "unable" }

/** Asks as OpenCode's own tools ask: by the user's rules, and the user where those say so. Never rejects. */
export const askUser = async (ask: ToolContext["ask"], question: Parameters<ToolContext["ask"]>[0]): Promise<Asked> => {
  try {
    const asked = ask(question)
    if (!("then" in asked)) return { kind: "unable" }
    await asked
    return { kind: "granted" }
  } catch (error) {
    return { kind: "refused", reason: describeError(error) }
  }
}
