/**
 * The first characters of a text, counted as `length` does, one fewer where a surrogate pair would be split: providers refuse a
 * request with half a character.
 */
export const cutText = (text: string, characters: number): string =>
  text.slice(0, Math.max(characters, 0)).replace(/[\uD800-\uDBFF]$/, "")

/** The last characters of a text, cut as `cutText` does. */
export const cutTextStart = (text: string, characters: number): string =>
  text.slice(Math.max(text.length - characters, 0)).replace(/^[\uDC00-\uDFFF]/, "")

/** Marks a cut with `…`, which is one of the characters. */
export const shorten = (text: string, characters: number): string =>
  text.length > characters ? `${cutText(text, characters - 1).trimEnd()}…` : text

/** The same by the characters that a person sees, for a terminal. */
export const fitWidth = (text: string, width: number): string => {
  const characters = Array.from(text)
  return characters.length > width ? `${characters.slice(0, Math.max(width - 1, 0)).join("")}…` : text
}

export const onOneLine = (text: string): string => text.replaceAll(/\s+/g, " ").trim()

/** Lower case, one kind of apostrophe, and no accents: what words are compared by. */
export const foldText = (text: string): string =>
  text.toLowerCase().replaceAll("’", "'").normalize("NFD").replace(/\p{M}/gu, "").replaceAll("ß", "ss")

/** `1 file`, `2 files` */
export const counted = (count: number, one: string, several = `${one}s`): string =>
  `${count} ${count === 1 ? one : several}`

/** A character as JSON may write it: `\u000a` */
export const escapeCharacter = (character: string): string =>
  `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`

/** A word as a shell reads it: its content may not be trusted, and a person may copy the command. */
export const shellWord = (word: string): string =>
  /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`
