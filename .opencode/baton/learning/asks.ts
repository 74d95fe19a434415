// The tools, and how a user asks for them.

export const LEARNED_TOOL = "learned"
export const FORGET_TOOL = "forget"
export const LEARNING_TOOLS = [LEARNED_TOOL, FORGET_TOOL] as const

/** Phrases with which a user asks for the learnings, or names one. */
const ASKS =
  /\blrn-[0-9a-f]{6}\b|\blearnings\b|\b(?:have|did) you (?:learn|learned|learnt)\b|\bforget (?:the|that|this|your) (?:learning|correction|preference|rule)\b/i

export const asksForLearnings = (text: string): boolean => ASKS.test(text)
