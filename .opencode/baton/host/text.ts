const isHighSurrogate = (code: number): boolean => code >= 0xd800 && code <= 0xdbff
const isLowSurrogate = (code: number): boolean => code >= 0xdc00 && code <= 0xdfff

/**
 * Returns the first characters (UTF-16 units) of a text, one fewer where a surrogate pair would be split: providers refuse a
 * request with half a character, and what was stored once is sent again each time.
 */
export const cutText = (text: string, characters: number): string => {
  const end = Math.min(Math.max(characters, 0), text.length)
  return text.slice(0, isHighSurrogate(text.charCodeAt(end - 1)) ? end - 1 : end)
}

/** Returns the last characters of a text, as `cutText` does the first. */
export const cutTextStart = (text: string, characters: number): string => {
  const start = Math.max(text.length - Math.max(characters, 0), 0)
  return text.slice(isLowSurrogate(text.charCodeAt(start)) ? start + 1 : start)
}
