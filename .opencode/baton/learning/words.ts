import { createHash } from "node:crypto"

const SMALL = new Set(
  (
    "a an the and or but so if then than that this these those there here it its i me my we us our you your he she they them their " +
    "is are was were be been being am do does did done doing don dont have has had having will would can could should shall must may might " +
    "to of in on at by for from with without into onto out up down over under about as not no nope nah yes ok okay please just only also too very really " +
    "what which who when where why how all any some every each both more most much many few one two other another same own such " +
    "wrong right correct incorrect actually instead rather prefer preferred use used using make makes made want wanted asked meant said say " +
    "always never again still now later new old thing things way like lets let get got go going good bad better best well sorry thanks " +
    "wait hmm oh hey stop because since need needs put keep try work works worked working fix add change write code file files line lines " +
    "m s t d ll re ve didn doesn isn wasn shouldn couldn wouldn won cannot"
  ).split(" "),
)

const WORD = /[\p{L}\p{N}_$@][\p{L}\p{N}_$.+#/@-]*/gu

/** Removes plural and tense endings, so that "tests" and "testing" match "test". Words with other characters stay unchanged. */
const stem = (word: string): string => {
  if (!/^[a-z]{4,}$/.test(word)) return word
  const base = word.replace(/(?:ies)$/, "y").replace(/(?:(?<=[^aeious])s|(?<=(?:ss|sh|ch|x))es)$/, "")
  return base.replace(/(?<=\w{3})(?:ing|ed)$/, "").replace(/([b-df-hj-np-tv-z])\1$/, "$1")
}

const unquoted = (word: string): string => word.replace(/^[@$]+(?=\w)|[./-]+$/g, "")

/** Returns the words that carry a text's meaning, in order, lower case and stemmed. */
export const contentWords = (text: string): string[] =>
  (text.toLowerCase().replaceAll(/[’']/g, " ").match(WORD) ?? [])
    .map(unquoted)
    .filter((word) => word !== "" && !SMALL.has(word))
    .map(stem)

const OPENER = /^(?:(?:no+|nope|nah|wait|ok|okay|hmm*|sorry|please|thanks|actually|and|but|so)\b[\s,.!:;…–—-]*)+/i
const NEGATION = /\b(?:not|never|no|avoid|stop|without)\b|n['’]?t\b|\binstead of\b|\brather than\b|\bover\b/gi

/**
 * Names a sentence by its content: its content words in order, and the position of its negations. The same statement in another
 * spelling has the same key. Pure.
 *
 * @returns 12 hex digits
 */
export const learningKey = (sentence: string): string => {
  const parts = sentence.replace(OPENER, "").split(NEGATION)
  const words = parts.map((part) => contentWords(part).join(" ")).join(" !")
  return createHash("sha256").update(words).digest("hex").slice(0, 12)
}

/** The content words of what a sentence asks for and of what it rules out. */
type Claim = { readonly wanted: readonly string[]; readonly unwanted: readonly string[] }

/** Words that rule out what follows them, up to the end of the clause. */
const AGAINST =
  /\b(?:instead of|rather than|over|not|never|avoid|stop|without)\b|\b(?:do|does|should|must|wo|ca)n['’]?t\b/i
const CLAUSE_END = /[,;:.!—–]|\b(?:use|but|instead|prefer)\b/i
const NEGATIVE_OPENER = /^(?:no+|nope|nah|wait)\b[\s,.!:;–—-]*/i

const readClaim = (sentence: string): Claim => {
  let rest = sentence.replace(NEGATIVE_OPENER, "")
  const [wanted, unwanted]: [string[], string[]] = [[], []]
  for (;;) {
    const against = AGAINST.exec(rest)
    if (!against) return { wanted: [...wanted, ...contentWords(rest)], unwanted }
    wanted.push(...contentWords(rest.slice(0, against.index)))
    rest = rest.slice(against.index + against[0].length).replace(/^\s*use\b/i, "")
    const end = CLAUSE_END.exec(rest)?.index ?? rest.length
    unwanted.push(...contentWords(rest.slice(0, end)))
    rest = rest.slice(end)
  }
}

const meets = (some: readonly string[], others: readonly string[]): boolean =>
  some.some((word) => others.includes(word))
const isWithin = (some: readonly string[], others: readonly string[]): boolean =>
  some.length > 0 && some.every((word) => others.includes(word))

const NUMBER = /\b\d+\b/g
/** True for "4 spaces" and "2 spaces": the same words, another number. */
const differsInNumber = (one: string, other: string): boolean => {
  const [first, second] = [contentWords(one).join(" "), contentWords(other).join(" ")]
  const words = contentWords(one.replaceAll(NUMBER, "")).length
  return words >= 1 && first !== second && first.replaceAll(NUMBER, "#") === second.replaceAll(NUMBER, "#")
}

/**
 * Tells whether a newer sentence revokes an older one. Certain cases only: each wants what the other rules out, one rules out
 * exactly what the other wants, or they differ in nothing but a number. Pure.
 */
export const contradicts = (newer: string, older: string): boolean => {
  const [now, before] = [readClaim(newer), readClaim(older)]
  const isSwapped = meets(now.wanted, before.unwanted) && meets(now.unwanted, before.wanted)
  const isAllowed = before.wanted.length === 0 && now.unwanted.length === 0 && isWithin(before.unwanted, now.wanted)
  const isForbidden = now.wanted.length === 0 && before.unwanted.length === 0 && isWithin(before.wanted, now.unwanted)
  return isSwapped || isAllowed || isForbidden || differsInNumber(newer, older)
}
