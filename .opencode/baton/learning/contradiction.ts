import { contentWords } from "./words.ts"

/** What a sentence asks for and what it rules out, in content words. */
type Claim = { readonly wanted: readonly string[]; readonly unwanted: readonly string[] }

/** What follows is ruled out, up to the end of its clause. */
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
/** "4 spaces" and "2 spaces": the same words, another number. */
const differsInNumber = (one: string, other: string): boolean => {
  const [first, second] = [contentWords(one).join(" "), contentWords(other).join(" ")]
  const words = contentWords(one.replaceAll(NUMBER, "")).length
  return words >= 1 && first !== second && first.replaceAll(NUMBER, "#") === second.replaceAll(NUMBER, "#")
}

/**
 * Whether a newer sentence takes back what an older one asked for. Sure cases alone: one wants what the other rules out
 * and the other way round, one rules out just what the other wants, or they differ in a number and nothing else. Pure.
 */
export const contradicts = (newer: string, older: string): boolean => {
  const [now, before] = [readClaim(newer), readClaim(older)]
  const isSwapped = meets(now.wanted, before.unwanted) && meets(now.unwanted, before.wanted)
  const isAllowed = before.wanted.length === 0 && now.unwanted.length === 0 && isWithin(before.unwanted, now.wanted)
  const isForbidden = now.wanted.length === 0 && before.unwanted.length === 0 && isWithin(before.wanted, now.unwanted)
  return isSwapped || isAllowed || isForbidden || differsInNumber(newer, older)
}
