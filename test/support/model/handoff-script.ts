import { type ModelReply, newestWords, type Script, type ScriptedModel } from "./scripted-model.ts"

type HandedOver = { prompt: string; files: readonly string[]; start?: boolean; agent?: string; model?: string }

/**
 * An agent that calls handoff_session for /handoff, and read_session for a message with READ-THE-OLD-ONE; it answers other
 * messages with a word.
 */
export const handoffScript =
  (handedOver: HandedOver): Script =>
  (request): ModelReply => {
    if (request.kind === "compaction") return { text: "A summary." }
    const last = newestWords(request)
    if (last.includes("[tool]")) return { text: "Done." }
    if (last.includes("Hand this work over")) return { tool: "handoff_session", input: handedOver }
    const from = /Continuing work from session (ses_\w+)/.exec(request.conversation)?.[1]
    if (last.includes("READ-THE-OLD-ONE") && from) return { tool: "read_session", input: { sessionID: from } }
    return { text: "Noted." }
  }

/** The new session of the last handoff in the model's requests. */
export const handedOverTo = ({ model }: { model: ScriptedModel }): string => {
  const answer = model.received("turn").at(-1)?.conversation ?? ""
  const to = /stored in the new session (ses_\w+)/.exec(answer)?.[1]
  if (to !== undefined) return to
  throw new Error(`no session was made: ${answer.slice(-1_500)}`)
}
