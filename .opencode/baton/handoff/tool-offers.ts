import { hideTools, noteTextOf } from "../host/messages.ts"
import type { StoredMessage } from "../host/sessions.ts"
import { collectUserText } from "../task/parse.ts"

export const HANDOFF_TOOL = "handoff_session"
export const READ_TOOL = "read_session"
export type HandoffTool = typeof HANDOFF_TOOL | typeof READ_TOOL

const WANTS_HANDOFF = /\bhandoff_session\b|\bhand[- ]?(?:off|over|ing|ed)\b/i
const WANTS_READING = /\bread_session\b|\bses_[A-Za-z0-9]{10,}/

/** The tools that a user's words ask for: /handoff's template names one, a draft's first line the other. */
export const toolsAskedFor = (text: string): HandoffTool[] => [
  ...(WANTS_HANDOFF.test(text) ? ([HANDOFF_TOOL] as const) : []),
  ...(WANTS_READING.test(text) ? ([READ_TOOL] as const) : []),
]

export type ToolOffers = ReturnType<typeof createToolOffers>

/**
 * Takes the feature's tools out of a model's request unless the session has asked for them, so that a session that hands
 * nothing over sends what it would send without the bundle.
 */
export const createToolOffers = () => {
  const asked = new Map<string, Set<HandoffTool>>()
  return {
    apply: (messages: readonly StoredMessage[]): void => {
      const newest = messages.findLast(({ info }) => info.role === "user")?.info
      if (newest?.role !== "user") return
      const wanted = asked.get(newest.sessionID) ?? new Set()
      asked.set(newest.sessionID, wanted)
      for (const { info, parts } of messages) {
        if (info.role !== "user" || wanted.size === 2) continue
        for (const tool of toolsAskedFor(collectUserText(parts))) wanted.add(tool)
        // The note about a task's last handoff names the tool, and the session that it can read.
        if (parts.some((part) => noteTextOf(part)?.includes(READ_TOOL))) wanted.add(READ_TOOL)
      }
      const hidden = [HANDOFF_TOOL, READ_TOOL].filter((tool) => !wanted.has(tool as HandoffTool))
      hideTools(messages, hidden)
    },
    /** Whether the session's words were looked at before. */
    isKnown: (sessionID: string): boolean => asked.has(sessionID),
    /** For a session whose draft has been compacted away. */
    offerReading: (sessionID: string): void => {
      asked.set(sessionID, new Set([READ_TOOL]))
    },
    forget: (sessionID: string): void => {
      asked.delete(sessionID)
    },
  }
}
