import { readFileSync } from "node:fs"
import { join } from "node:path"
import { detect } from "../../.opencode/baton/learning/detect.ts"
import type { LearningType } from "../../.opencode/baton/learning/signals.ts"
import { REPOSITORY } from "./opencode/opencode-binary.ts"

/** `first` and `second` were used to improve the detector; `third` was written after it was frozen. */
export const LEARNING_SETS = ["first", "second", "third"] as const
/** In five languages. The rules were tuned on `people`; `people-fresh` was written before its first score and is as it was. */
export const PEOPLE_SETS = ["people", "people-held-back", "people-fresh"] as const
export const LANGUAGES = ["en", "de", "es", "fr", "zh"] as const
type LearningSet = (typeof LEARNING_SETS)[number] | (typeof PEOPLE_SETS)[number]

type Labelled = { lang?: (typeof LANGUAGES)[number]; text: string; learn: { type: LearningType; sentence: string }[] }

export const readLearningSet = (name: LearningSet): Labelled[] =>
  readFileSync(join(REPOSITORY, "test", "fixtures", "learning", `${name}.jsonl`), "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Labelled)

/** A stored sentence may have an opener or a filler more or less than the label. */
const isSame = (stored: string, label: string): boolean => stored.includes(label) || label.includes(stored)

/** @param language of the set's messages only those in it */
export const scoreLearningSet = (name: LearningSet, language?: (typeof LANGUAGES)[number]) => {
  const set = readLearningSet(name).filter(({ lang }) => language === undefined || lang === language)
  const [wrong, missed]: [string[], string[]] = [[], []]
  let [right, rightType] = [0, 0]
  for (const { text, learn } of set) {
    const { learnings } = detect(text)
    for (const { type, sentence } of learnings) {
      const label = learn.find((one) => isSame(sentence, one.sentence))
      if (label === undefined) wrong.push(sentence)
      else right += 1
      if (label?.type === type) rightType += 1
    }
    const isMissed = (label: string) => !learnings.some(({ sentence }) => isSame(sentence, label))
    missed.push(...learn.map(({ sentence }) => sentence).filter(isMissed))
  }
  const labels = set.reduce((sum, { learn }) => sum + learn.length, 0)
  const stored = right + wrong.length
  return {
    messages: set.length,
    /** Sentences that should be stored; `stored` counts those that are. */
    labels,
    stored,
    precision: right / stored,
    recall: (labels - missed.length) / labels,
    /** Correctly stored sentences that have the labelled type. */
    rightType: rightType / right,
    wrong,
    missed,
  }
}

/** Scores each set, and those of people by language, with the least precision and recall that is promised. */
export const scoreDetection = () => {
  const row = (set: LearningSet, language?: (typeof LANGUAGES)[number]) => {
    const { messages, labels, stored, precision, recall, rightType } = scoreLearningSet(set, language)
    const name = language === undefined ? set : `${set}, ${language}`
    return { set: name, messages, labels, stored, precision, recall, rightType }
  }
  return [
    ...LEARNING_SETS.map((set) => ({ ...row(set), leastPrecision: 0.95, leastRecall: 0.6 })),
    ...PEOPLE_SETS.flatMap((set) =>
      LANGUAGES.map((language) => ({
        ...row(set, language),
        leastPrecision: 0.9,
        leastRecall: language === "en" ? 0.6 : 0.5,
      })),
    ),
  ]
}

export type Detection = ReturnType<typeof scoreDetection>[number]
