/** The text's beginning. Half a character at the cut would make the request one that providers refuse. */
export const cutText = (text: string, maxCharacters: number): string =>
  text.slice(0, maxCharacters).replace(/[\uD800-\uDBFF]$/, "")
