import type { RetireEntry } from "../ledger/learning-record.ts"
import type { KnownLearning } from "./known-learning.ts"
import type { LearningProject } from "./project.ts"

const REASON_CHARACTERS = 200

/** The learning with this id of the ledger's, or this key. */
export const findByID = (known: readonly KnownLearning[], id: string): KnownLearning | undefined =>
  known.find((learning) => learning.id === id.trim() || learning.key === id.trim())

/** The end of a learning, as the outbox takes it. @param by who says so, in a few words */
export const retirement = (
  { key, folder }: KnownLearning,
  { name }: LearningProject,
  { reason, by, at }: { reason: string; by: string; at: Date },
): RetireEntry => ({
  kind: "retire",
  project: name,
  folder,
  key,
  as: "forgotten",
  reason: `${at.toISOString().slice(0, 10)} by ${by}: ${reason.replaceAll(/\s+/g, " ").trim().slice(0, REASON_CHARACTERS)}`,
})
