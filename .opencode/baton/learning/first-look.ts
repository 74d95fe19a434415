import type { Part } from "@opencode-ai/sdk"
import { collectUserText } from "../task/user-text.ts"
import { detect } from "./detect.ts"
import { asksForLearnings } from "./tool-names.ts"

/** Whether a user's message teaches something or asks for what was learned, in a project that has learned nothing yet. */
export const isWanted = (parts: readonly Part[]): boolean => {
  const text = collectUserText(parts)
  return asksForLearnings(text) || detect(text).learnings.length > 0
}
