import type { ModelReply, Script } from "./scripted-model.ts"

/**
 * An agent that calls handoff_session when /handoff asks for it, and read_session when a message says READ-THE-OLD-ONE;
 * anything else it answers with a word.
 */
export const handoffScript =
  (handedOver: { prompt: string; files: readonly string[] }): Script =>
  ({ kind, conversation }): ModelReply => {
    if (kind === "compaction") return { text: "A summary." }
    const last = conversation.slice(conversation.lastIndexOf("[user]"))
    if (last.includes("[tool]")) return { text: "Done." }
    if (last.includes("Hand this work over")) return { tool: "handoff_session", input: handedOver }
    const from = /Continuing work from session (ses_\w+)/.exec(conversation)?.[1]
    if (last.includes("READ-THE-OLD-ONE") && from) return { tool: "read_session", input: { sessionID: from } }
    return { text: "Noted." }
  }
