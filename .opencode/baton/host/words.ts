import { redact } from "./secrets.ts"
import { cutText, cutTextStart, onOneLine } from "./text.ts"

/** A text as words are compared in it: without regard to case, width and composition of characters, in any script. */
export const folded = (text: string): string => text.normalize("NFKC").toUpperCase()

type Stretch = { readonly from: number; readonly to: number; readonly words: readonly string[] }

/** More places of one word than that say no more. */
const MAX_PLACES = 200

const placesOf = (text: string, word: string): Stretch[] => {
  const places: Stretch[] = []
  for (let at = text.indexOf(word); at >= 0 && places.length < MAX_PLACES; at = text.indexOf(word, at + 1))
    places.push({ from: at, to: at + word.length, words: [word] })
  return places
}

/** Places of the words, one of each, that are nearest to each other; none when a word is missing. */
const nearest = (text: string, words: readonly string[]): Stretch[] => {
  const places = words.flatMap((word) => placesOf(text, word)).sort((one, other) => one.from - other.from)
  const newest = new Map<string, Stretch>()
  let best: Stretch[] = []
  let shortest = Number.POSITIVE_INFINITY
  for (const place of places) {
    newest.set(place.words.join(), place)
    const group = [...newest.values()]
    const length = place.to - Math.min(...group.map(({ from }) => from))
    if (group.length < words.length || length >= shortest) continue
    best = group
    shortest = length
  }
  return best.sort((one, other) => one.from - other.from)
}

/** Characters that are shown before and behind a word. */
const AROUND = 80
/** Characters in which a secret is recognised before a text is cut. */
const LOOKED_AROUND = 4_000

const joinNear = (places: readonly Stretch[]): Stretch[] => {
  const joined: Stretch[] = []
  for (const place of places) {
    const before = joined.at(-1)
    const isNear = before !== undefined && place.from - before.to <= 2 * AROUND
    if (!isNear) joined.push(place)
    else {
      const words = [...before.words, ...place.words]
      joined.splice(-1, 1, { from: before.from, to: Math.max(before.to, place.to), words })
    }
  }
  return joined
}

/** The place in a text of one in its folded form, which may be longer or shorter. */
const placeIn = (text: string, wanted: number): number => {
  let [low, high] = [0, text.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if (folded(cutText(text, middle)).length < wanted) low = middle + 1
    else high = middle
  }
  return low
}

const part = (text: string, from: number, to: number): string =>
  cutText(cutTextStart(text, text.length - Math.max(from, 0)), to - Math.max(from, 0))

const shown = (text: string, { from, to }: Stretch): string => {
  const [start, end] = [placeIn(text, from - AROUND), placeIn(text, to + AROUND)]
  return `${start > 0 ? "…" : ""}${onOneLine(part(text, start, end))}${end < text.length ? "…" : ""}`
}

/** Words that are sought, folded, each once. @param query words between blanks */
export const splitWords = (query: string): string[] => [...new Set(folded(query).split(/\s+/))].filter(Boolean)

/** True if all words are in the text, in any order, each also as a part of a longer one. @param words from `splitWords` */
export const hasWords = (text: string, words: readonly string[]): boolean => {
  const searched = folded(text)
  return words.every((word) => searched.includes(word))
}

/**
 * The text around the words on one line, without secrets.
 *
 * @param words from `splitWords`
 * @returns undefined when a word is missing, or only within a secret
 */
export const excerptAround = (text: string, words: readonly string[]): string | undefined => {
  const searched = folded(text)
  if (!words.every((word) => searched.includes(word))) return undefined
  const pieces = joinNear(nearest(searched, words)).map(({ from, to, words: sought }) => {
    const [start, end] = [placeIn(text, from - LOOKED_AROUND), placeIn(text, to + LOOKED_AROUND)]
    const region = redact(part(text, start, end))
    const clean = folded(region)
    const found = sought.filter((word) => clean.includes(word))
    return { found, lines: joinNear(nearest(clean, found)).map((stretch) => shown(region, stretch)) }
  })
  if (!words.every((word) => pieces.some(({ found }) => found.includes(word)))) return undefined
  return pieces.flatMap(({ lines }) => lines).join(" ")
}
