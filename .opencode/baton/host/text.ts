/**
 * The first characters of a text, counted as `length` does, one fewer where a surrogate pair would be split: providers refuse a
 * request with half a character.
 */
export const cutText = (text: string, characters: number): string =>
  text.slice(0, Math.max(characters, 0)).replace(/[\uD800-\uDBFF]$/, "")

/** The last characters of a text, cut as `cutText` does. */
export const cutTextStart = (text: string, characters: number): string =>
  text.slice(Math.max(text.length - characters, 0)).replace(/^[\uDC00-\uDFFF]/, "")
