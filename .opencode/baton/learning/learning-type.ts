/** What kind of thing was learned, the most important first. */
export const LEARNING_TYPES = ["correction", "decision", "preference", "anti_pattern", "pattern", "insight"] as const

export type LearningType = (typeof LEARNING_TYPES)[number]

export const isLearningType = (name: string): name is LearningType =>
  (LEARNING_TYPES as readonly string[]).includes(name)
