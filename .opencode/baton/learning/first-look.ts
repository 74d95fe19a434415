import type { Part } from "@opencode-ai/sdk"
import { parseTask } from "../task/parse.ts"
import { collectUserText } from "../task/user-text.ts"
import { asksForLearnings } from "./tool-names.ts"

/** Whether a user's message teaches something or asks for what was learned, in a project that has learned nothing yet. */
export const isWanted = async (parts: readonly Part[]): Promise<boolean> => {
  const text = collectUserText(parts)
  if (asksForLearnings(text)) return true
  // What sets a task teaches nothing, and its first request waits for this.
  if (parseTask(text) !== undefined) return false
  const { detect } = await import("./detect.ts")
  return detect(text).learnings.length > 0
}
