/** One sentence: as it was written, and with everything in quotes or code marks blotted out, of the same length. */
export type Sentence = { readonly text: string; readonly masked: string }

const QUOTED =
  /`[^`\n]{1,300}`|"[^"\n]{1,300}"|“[^”\n]{1,300}”|«[^»\n]{1,300}»|„[^“”\n]{1,300}[“”]|(?<![\p{L}\p{N}])'[^'\n]{2,200}'(?![\p{L}\p{N}])/gu
const BLOT = "¤"

const BULLET = /^\s*(?:[-*+•]|\d{1,2}[.)])\s+/
/** A line that is shorter was ended by hand, not by a window's width. */
const WRAPPED_CHARACTERS = 60

const ABBREVIATION = /(?:\b(?:e\.g|i\.e|vs|etc|approx|cf|resp|incl|mr|mrs|dr|fig)|\b\p{Lu})\.$/iu
const OPENER =
  /^(?:(?:@\S+|oh|hm+|um+|well|wait|sorry|hey|stop|ok|okay|actually)[\s,.!…-]+)*(?:no+|nope|nah|wrong|wait|actually|stop|that'?s (?:wrong|incorrect|not (?:right|correct|true))|(?:that|this) is (?:wrong|incorrect|not (?:right|correct)))[\s.!…]*$/i

const mask = (text: string): string =>
  text.replace(QUOTED, (quoted) => quoted[0] + BLOT.repeat(quoted.length - 2) + quoted.at(-1))

/** Lines that belong together: a hard-wrapped line goes on in the next, a bullet begins anew. */
const joinLines = (lines: readonly string[]): string[] => {
  const joined: string[] = []
  let open = false
  for (const line of lines) {
    const text = line.replace(BULLET, "").trim()
    const last = joined.at(-1)
    if (text === "") open = false
    else if (open && last !== undefined && !BULLET.test(line) && /^\p{Ll}/u.test(text))
      joined[joined.length - 1] = `${last} ${text}`
    else joined.push(text)
    if (text !== "") open = line.length >= WRAPPED_CHARACTERS && !/[.!?:]$/.test(text)
  }
  return joined
}

const split = (text: string): Sentence[] => {
  const masked = mask(text)
  const found: Sentence[] = []
  let start = 0
  for (const { index, 0: end } of masked.matchAll(/[.!?…]+["”')\]]*(?=\s)/g)) {
    const stop = index + end.length
    if (ABBREVIATION.test(masked.slice(Math.max(0, stop - 8), stop))) continue
    found.push({ text: text.slice(start, stop), masked: masked.slice(start, stop) })
    start = stop
  }
  found.push({ text: text.slice(start), masked: masked.slice(start) })
  return found
    .map((sentence) => {
      const lead = sentence.text.length - sentence.text.trimStart().length
      const end = sentence.text.trimEnd().length
      return { text: sentence.text.slice(lead, end), masked: sentence.masked.slice(lead, end) }
    })
    .filter(({ text: one }) => one !== "")
}

/** "No. Use tabs." is one thing said in two sentences. */
const withOpeners = (sentences: readonly Sentence[]): Sentence[] => {
  const glued: Sentence[] = []
  let opener: Sentence | undefined
  for (const sentence of sentences) {
    const whole: Sentence = opener
      ? { text: `${opener.text} ${sentence.text}`, masked: `${opener.masked} ${sentence.masked}` }
      : sentence
    if (OPENER.test(sentence.masked)) opener = whole
    else {
      glued.push(whole)
      opener = undefined
    }
  }
  return opener ? [...glued, opener] : glued
}

/** @param lines as `ownWords` gives them */
export const splitSentences = (lines: readonly string[]): Sentence[] =>
  joinLines(lines).flatMap((text) => withOpeners(split(text)))
