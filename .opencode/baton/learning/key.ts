import { createHash } from "node:crypto"
import { contentWords } from "./words.ts"

const OPENER = /^(?:(?:no+|nope|nah|wait|ok|okay|hmm*|sorry|please|thanks|actually|and|but|so)\b[\s,.!:;…–—-]*)+/i
const NEGATION = /\b(?:not|never|no|avoid|stop|without)\b|n['’]?t\b|\binstead of\b|\brather than\b|\bover\b/gi

/**
 * Names what a sentence says, so that saying it again in another spelling gives the same name: its content words in their
 * order, and where it says no. Pure.
 *
 * @returns 12 hex digits
 */
export const learningKey = (sentence: string): string => {
  const parts = sentence.replace(OPENER, "").split(NEGATION)
  const words = parts.map((part) => contentWords(part).join(" ")).join(" !")
  return createHash("sha256").update(words).digest("hex").slice(0, 12)
}
