/** Text as Go prints it, since prog's readers parse prog's output. */

const HTML_ESCAPES: Readonly<Record<string, string>> = {
  "<": "\\u003c",
  ">": "\\u003e",
  "&": "\\u0026",
  "\u2028": "\\u2028",
  "\u2029": "\\u2029",
}

/** encoding/json's MarshalIndent with two spaces: HTML characters are escaped. */
export const goJson = (value: unknown): string =>
  JSON.stringify(value, null, 2).replace(/[<>&\u2028\u2029]/g, (character) => HTML_ESCAPES[character] ?? character)

const SHORT_ESCAPES: Readonly<Record<string, string>> = {
  "\u0007": "\\a",
  "\b": "\\b",
  "\f": "\\f",
  "\n": "\\n",
  "\r": "\\r",
  "\t": "\\t",
  "\v": "\\v",
  '"': '\\"',
  "\\": "\\\\",
}

const PRINTABLE = /^[\p{L}\p{M}\p{N}\p{P}\p{S} ]$/u

const quoteCharacter = (character: string): string => {
  const short = SHORT_ESCAPES[character]
  if (short !== undefined) return short
  if (PRINTABLE.test(character)) return character
  const point = character.codePointAt(0) ?? 0
  if (point < 0x80) return `\\x${point.toString(16).padStart(2, "0")}`
  return point > 0xffff ? `\\U${point.toString(16).padStart(8, "0")}` : `\\u${point.toString(16).padStart(4, "0")}`
}

/** strconv.Quote, the verb %q for a string. */
export const goQuote = (text: string): string => `"${Array.from(text, quoteCharacter).join("")}"`

/** The verb %-Ns: pads on the right to so many code points. */
export const padRight = (text: string, width: number): string => text + " ".repeat(missing(text, width))

/** The verb %Ns. */
export const padLeft = (text: string, width: number): string => " ".repeat(missing(text, width)) + text

const missing = (text: string, width: number): number => Math.max(0, width - Array.from(text).length)

/** The order of SQLite's BINARY collation: by code points, not by UTF-16 units. */
export const compareText = (left: string, right: string): number => {
  if (left === right) return 0
  const [a, b] = [Array.from(left), Array.from(right)]
  const at = a.findIndex((character, index) => character !== b[index])
  if (at === -1) return -1
  return (a[at]?.codePointAt(0) ?? -1) - (b[at]?.codePointAt(0) ?? -1)
}

const encoder = new TextEncoder()

/** Cuts to 40 bytes as prog does for tables, but never inside a character. */
export const tableSummary = (text: string): string => {
  const [limit, kept] = [40, 37]
  if (encoder.encode(text).length <= limit) return text
  let cut = ""
  let size = 0
  for (const character of text) {
    size += encoder.encode(character).length
    if (size > kept) break
    cut += character
  }
  return `${cut}...`
}
