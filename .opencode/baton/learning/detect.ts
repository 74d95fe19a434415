import { parseTask } from "../task/parse.ts"
import { isEnglish } from "./language.ts"
import type { LearningType } from "./learning-type.ts"
import { ownWords } from "./own-words.ts"
import { type Sentence, splitSentences } from "./sentences.ts"
import { EXCLUSIONS, SIGNALS } from "./signals.ts"
import { contentWords } from "./words.ts"

/** A sentence of the user's that something can be learned from. */
export type Detected = { readonly type: LearningType; readonly sentence: string }

export type Detection = {
  /** In the order of the message. */
  readonly learnings: readonly Detected[]
  /** Whether the user objects to what was done, be it in words that teach nothing ("That's wrong."). */
  readonly objects: boolean
}

const MAX_CHARACTERS = 400
const MIN_WORDS = 3
const MAX_WORDS = 60

const FILLERS =
  /^(?:(?:ok|okay|k|well|so|and|but|oh|hm+|um+|uh|hey|hi|hello|yes|yeah|yep|sure|right|great|good|nice|thanks|thank you|thx|perfect|cool|sorry|wait|please|pls|plz|also|btw|almost|looks good|one (?:more )?thing|that'?s better|@\S+|then)(?:[\s,.!:…–—-]+|$))+/

/** Lower case, one kind of apostrophe, no fillers, common slips mended. */
const normalise = (masked: string): string => {
  const text = masked
    .toLowerCase()
    .replaceAll("’", "'")
    .replace(/\bdont\b/g, "don't")
    .replace(/\bdidnt\b/g, "didn't")
    .replace(/\b(?:plz|pls)\b/g, "please")
    .replace(/\s+/g, " ")
    .trim()
  return text.replace(FILLERS, "")
}

const NOTHING: Detection = { learnings: [], objects: false }

const isExcluded = (text: string): boolean => EXCLUSIONS.some((pattern) => pattern.test(text))

const judge = ({ text, masked }: Sentence): { type: LearningType; teaches: boolean } | undefined => {
  if (text.length > MAX_CHARACTERS) return undefined
  const plain = normalise(masked)
  const bare = plain.replace(/[.!…,;:]+$/, "")
  const found = SIGNALS.find(({ pattern }) => pattern.test(bare))
  if (!found || isExcluded(plain)) return undefined
  const words = text.split(/\s+/).length
  const teaches = words >= MIN_WORDS && words <= MAX_WORDS && contentWords(text).length > 0
  return { type: found.type, teaches }
}

/**
 * What one message of a user teaches. Pure; linear in the length of the text.
 *
 * @param text user-authored text of one message, as `collectUserText` gives it
 */
export const detect = (text: string): Detection => {
  // What sets a task is kept with the task, and is often written by a program.
  if (parseTask(text) !== undefined) return NOTHING
  const lines = ownWords(text)
  if (!isEnglish(lines.join("\n"))) return NOTHING
  const judged = splitSentences(lines).map((sentence) => ({ sentence: sentence.text, ...judge(sentence) }))
  return {
    learnings: judged.flatMap(({ sentence, type, teaches }) =>
      type !== undefined && teaches === true ? [{ type, sentence }] : [],
    ),
    objects: judged.some(({ type }) => type === "correction"),
  }
}
