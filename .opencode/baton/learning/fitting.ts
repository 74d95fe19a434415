import { cutText } from "../host/text.ts"
import type { KnownLearning } from "./known.ts"
import { LEARNING_TYPES } from "./signals.ts"
import { isCommon, rootsOf, weightOf } from "./words.ts"

/** The number that precision and recall are measured at: docs/learning.md. */
export const MAX_GIVEN = 5

/** A short text is about what it names; a long one is about what its first line, or the task's title, names. */
const LEAD_CHARACTERS = 160
const LATER_WEIGHT = 0.5
const FILE_WEIGHT = 2

/** Two rare words, or a concept or a file of the learning. */
const FITS = 2
/** One rare word is enough in a short sentence. */
const SHORT_FITS = 1
const SHORT_SHARE = 0.25

const DAY_MS = 86_400_000
/** Without its folders, and no longer than file systems take; it starts at the name's own start, or each letter would be one. */
const FILE_NAME = /(?<![\w@.-])[\w@.-]{0,255}\w\.\w+/g

/** A message that only asks: rules about how changes are made do not concern it. */
const isQuestion = (text: string): boolean =>
  /^(?:what|which|who|why|how|where|is|are|does|do|should|can)\b[^.!]*\?\s*$|^explain\b/i.test(text.trim())

/** `my-app` is also written `my app` and `MyApp`. */
const withoutName = (text: string, project: string): string => {
  const parts = project.split(/[^\p{L}\p{N}]+/u).filter(Boolean)
  if (parts.length === 0) return text
  const name = new RegExp(`(?<![\\p{L}\\p{N}])${parts.join("[^\\p{L}\\p{N}]?")}(?![\\p{L}\\p{N}])`, "giu")
  return text.replace(name, " ")
}

/**
 * @returns a function that measures how well a learning fits the text, by the words they share, a subject's more than a common
 *   one, and by concepts and files that the text names. 0 when it does not fit.
 */
const createMatcher = (said: string, isEnough: Enough, project = "") => {
  const text = withoutName(said, project)
  const own = new Set(rootsOf(project))
  const first = text.length <= LEAD_CHARACTERS ? text : cutText(text.split("\n", 1)[0] ?? "", LEAD_CHARACTERS)
  const lead = new Set(rootsOf(first))
  const weights = new Map(rootsOf(text).map((root) => [root, weightOf(root) * (lead.has(root) ? 1 : LATER_WEIGHT)]))
  const names = new Set(said.match(FILE_NAME))
  const endings = [...names].map((name) => `/${name}`)
  const isNamed = (file: string): boolean => endings.some((ending) => file.endsWith(ending)) || names.has(file)
  return ({ words, weight, concepts, files }: KnownLearning): number => {
    let [shared, named, ownWeight] = [0, files.filter(isNamed).length * FILE_WEIGHT, 0]
    for (const word of words) {
      if (own.has(word)) ownWeight += weightOf(word)
      const value = weights.get(word)
      if (value === undefined) continue
      shared += value
      if (!isCommon(word) && concepts.some((concept) => rootsOf(concept).includes(word))) named += value
    }
    const score = shared + named
    return isEnough({ score, share: shared === 0 ? 0 : shared / (weight - ownWeight || shared) }) ? score : 0
  }
}

type Enough = (match: { score: number; share: number }) => boolean

const fits: Enough = ({ score, share }) => score >= FITS || (score >= SHORT_FITS && share >= SHORT_SHARE)
const mentions: Enough = ({ score }) => score > 0

/** The values that learnings are ranked by, computed once. */
type Ranked = {
  readonly learning: KnownLearning
  readonly isCorrection: boolean
  readonly match: number
  readonly type: number
  readonly weeks: number
  readonly confirmations: number
}

/** Age in weeks, so that a day does not outweigh being said three times. */
const weeksOld = ({ at }: KnownLearning, now: number): number => Math.floor((now - Date.parse(at)) / (7 * DAY_MS)) || 0

const byRank = (one: Ranked, other: Ranked): number =>
  Number(other.isCorrection) - Number(one.isCorrection) ||
  other.match - one.match ||
  one.type - other.type ||
  one.weeks - other.weeks ||
  other.confirmations - one.confirmations ||
  (one.learning.key < other.learning.key ? -1 : 1)

const rank = (learning: KnownLearning, match: number, now: number): Ranked => {
  const { by, type, times, confirmed } = learning
  return {
    learning,
    isCorrection: by === "user" && type === "correction",
    match,
    type: LEARNING_TYPES.indexOf(type),
    weeks: weeksOld(learning, now),
    confirmations: times + (confirmed ? 1 : 0),
  }
}

/** A remark about one moment is told when it was said again. */
export const isShown = ({ reach, times }: KnownLearning): boolean => reach !== "moment" || times > 1

type Chosen = {
  readonly now: number
  readonly limit: number
  readonly isWanted: (learning: KnownLearning, match: number) => boolean
}

const choose = (
  known: readonly KnownLearning[],
  matchOf: (learning: KnownLearning) => number,
  { now, limit, isWanted }: Chosen,
): KnownLearning[] => {
  /** In order; of thousands, few get in. */
  const best: Ranked[] = []
  for (const learning of known) {
    if (learning.status !== "active") continue
    const match = matchOf(learning)
    if (!isWanted(learning, match)) continue
    const ranked = rank(learning, match, now)
    const last = best[limit - 1]
    if (last && byRank(ranked, last) > 0) continue
    const place = best.findIndex((other) => byRank(ranked, other) < 0)
    best.splice(place < 0 ? best.length : place, 0, ranked)
    best.length = Math.min(best.length, limit)
  }
  return best.map(({ learning }) => learning)
}

/**
 * Chooses the learnings that fit a text: the user's corrections first, then by match, type, recency and how often they were
 * said. Pure.
 *
 * @param now epoch ms
 * @param project its name, which says nothing about what fits
 */
export const chooseLearnings = (
  known: readonly KnownLearning[],
  text: string,
  now: number,
  project = "",
): KnownLearning[] => {
  const isAsking = isQuestion(text)
  const isWanted: Chosen["isWanted"] = (learning, match) => {
    const isForAll = learning.reach === "answers" || (learning.reach === "changes" && !isAsking)
    return (match > 0 || isForAll) && isShown(learning)
  }
  return choose(known, createMatcher(text, fits, project), { now, limit: MAX_GIVEN, isWanted })
}

/** Finds the active learnings that share a word with the query; all for an empty one. Pure. @param now epoch ms */
export const searchLearnings = (
  known: readonly KnownLearning[],
  query: string,
  limits: { now: number; limit: number },
): KnownLearning[] => {
  const isWanted = (_: KnownLearning, match: number): boolean => match > 0 || query.trim() === ""
  return choose(known, createMatcher(query, mentions), { ...limits, isWanted })
}
