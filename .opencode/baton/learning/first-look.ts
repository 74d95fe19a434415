import type { Part } from "@opencode-ai/sdk"
import { collectUserText, parseTask } from "../task/parse.ts"

/** Whether a user's message teaches something, without the rest of the feature. */
export const isTeaching = async (parts: readonly Part[]): Promise<boolean> => {
  const text = collectUserText(parts)
  // What sets a task teaches nothing.
  if (parseTask(text) !== undefined) return false
  const { detect } = await import("./detect.ts")
  return detect(text).learnings.length > 0
}
