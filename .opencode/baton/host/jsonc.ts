/** A string, a comment (an open one reaches to the end), or any other character. */
const COMMENTS = /"(?:[^"\\\n]|\\.)*"|\/\/[^\n]*|\/\*[\s\S]*?(?:\*\/|$)/g
const TRAILING_COMMAS = /"(?:[^"\\\n]|\\.)*"|,(?=\s*[}\]])/g

/**
 * Parses JSON with comments and trailing commas, as OpenCode reads its own settings. Linear.
 *
 * @throws SyntaxError with the place in the text
 */
export const parseJsonc = (text: string): unknown => {
  const blank = (found: string): string => (found.startsWith('"') ? found : found.replaceAll(/[^\n]/g, " "))
  const plain = text.replace(/^\uFEFF/, " ").replaceAll(COMMENTS, blank)
  return JSON.parse(plain.replaceAll(TRAILING_COMMAS, blank))
}
