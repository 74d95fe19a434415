import type { KnownLearning } from "./known-learning.ts"
import { LEARNING_TYPES } from "./learning-type.ts"
import { contentWords } from "./words.ts"

export const MAX_GIVEN = 8
const DAY_MS = 86_400_000
/** A file is a closer match than a word. */
const FILE_WEIGHT = 2
const baseName = (path: string): string => path.slice(path.lastIndexOf("/") + 1)

/** What is compared, worked out once. */
type Ranked = {
  readonly learning: KnownLearning
  readonly type: number
  readonly match: number
  readonly weeks: number
  readonly confirmations: number
}

/** Weeks of age, so that a day more or less does not outweigh being said three times. */
const weeksOld = ({ at }: KnownLearning, now: number): number => Math.floor((now - Date.parse(at)) / (7 * DAY_MS)) || 0

/** @returns how well a learning matches: the words in common, files by name or path */
const createMatcher = (text: string): ((learning: KnownLearning) => number) => {
  const words = new Set(contentWords(text).flatMap((word) => [word, baseName(word)]))
  const padded = [...words].map((word) => ` ${word} `)
  const namesFile = [...words].some((word) => /[./]/.test(word))
  return ({ words: own, files }) => {
    let match = 0
    for (const word of padded) if (own.includes(word)) match += 1
    if (!namesFile) return match
    for (const file of files) {
      const path = file.toLowerCase()
      if (words.has(path) || words.has(baseName(path))) match += FILE_WEIGHT
    }
    return match
  }
}

const byRank = (one: Ranked, other: Ranked): number =>
  one.type - other.type ||
  other.match - one.match ||
  one.weeks - other.weeks ||
  other.confirmations - one.confirmations ||
  (one.learning.key < other.learning.key ? -1 : 1)

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
  const matchOf = createMatcher(text)
  const ranked: Ranked[] = []
  for (const learning of known) {
    if (learning.status !== "active") continue
    const match = matchOf(learning)
    if (match === 0 && needsMatch && !learning.isStanding) continue
    const confirmations = learning.times + (learning.confirmed ? 1 : 0)
    const type = LEARNING_TYPES.indexOf(learning.type)
    ranked.push({ learning, type, match, weeks: weeksOld(learning, now), confirmations })
  }
  return ranked
    .sort(byRank)
    .slice(0, limit)
    .map(({ learning }) => learning)
}
