import type { KnownLearning } from "./known-learning.ts"
import { LEARNING_TYPES } from "./learning-type.ts"
import { contentWords } from "./words.ts"

export const MAX_GIVEN = 8
const DAY_MS = 86_400_000
/** A file is a closer match than a word. */
const FILE_WEIGHT = 2
/** The user said it for all that is to come: it fits any work, behind what fits this one. */
const STANDING =
  /\b(?:always|never|from now on|going forward|every time|whenever)\b|\bin this (?:repo|project|code ?base)/i

const baseName = (path: string): string => path.slice(path.lastIndexOf("/") + 1)

type Ranked = { readonly learning: KnownLearning; readonly match: number }

/** Weeks of age, so that a day more or less does not outweigh being said three times. */
const weeksOld = ({ at }: KnownLearning, now: number): number => Math.floor((now - Date.parse(at)) / (7 * DAY_MS)) || 0

const confirmations = ({ times, confirmed }: KnownLearning): number => times + (confirmed ? 1 : 0)

const matchOf = (learning: KnownLearning, words: ReadonlySet<string>): number => {
  let match = 0
  for (const word of learning.words.split(" ")) if (words.has(word)) match += 1
  for (const file of learning.files)
    if (words.has(file.toLowerCase()) || words.has(baseName(file).toLowerCase())) match += FILE_WEIGHT
  return match
}

/**
 * The best few of the active learnings for a text: by type, by how well they match its words and file names, by recency,
 * by how often they were said. Nothing for a text that none matches. Pure.
 *
 * @param now epoch ms
 */
export const chooseLearnings = (
  known: readonly KnownLearning[],
  text: string,
  { now, limit = MAX_GIVEN, needsMatch = true }: { now: number; limit?: number; needsMatch?: boolean },
): KnownLearning[] => {
  const words = new Set(contentWords(text).flatMap((word) => [word, baseName(word)]))
  const ranked = known.flatMap((learning): Ranked[] => {
    if (learning.status !== "active") return []
    const match = matchOf(learning, words)
    return match > 0 || !needsMatch || STANDING.test(learning.sentence) ? [{ learning, match }] : []
  })
  const order = (one: Ranked, other: Ranked): number =>
    LEARNING_TYPES.indexOf(one.learning.type) - LEARNING_TYPES.indexOf(other.learning.type) ||
    other.match - one.match ||
    weeksOld(one.learning, now) - weeksOld(other.learning, now) ||
    confirmations(other.learning) - confirmations(one.learning) ||
    (one.learning.key < other.learning.key ? -1 : 1)
  return ranked
    .toSorted(order)
    .slice(0, limit)
    .map(({ learning }) => learning)
}
