/** Finds the first match in a line: its start, or -1. */
export type LineSearch = (line: string) => number

export type ParsedSearch =
  | { readonly kind: "search"; readonly find: LineSearch }
  | { readonly kind: "invalid"; readonly reason: string }

const SLASHED = /^\/(.+)\/([imsu]*)$/s
const MAX_PATTERN_CHARACTERS = 500
/** A line is cut to this before it is searched by a pattern. */
const MAX_SEARCHED_LINE = 2_000
/** A repetition inside a repeated group, or a reference back: what can take a regular expression for ever. */
const RUNAWAY =
  /\([^()]*(?:[+*]|\{\d+,\d*\})[^()]*\)\s*(?:[+*]|\{\d+,?\d*\})|\([^()]*\|[^()]*\)\s*(?:[+*]|\{\d+,)|\\[1-9]|\\k</

/** `/pattern/i` is a regular expression, anything else a text, whose case does not matter. */
export const parseSearch = (search: string): ParsedSearch => {
  const [, pattern, flags = ""] = SLASHED.exec(search) ?? []
  if (pattern === undefined) {
    const wanted = search.toLowerCase()
    return { kind: "search", find: (line) => line.toLowerCase().indexOf(wanted) }
  }
  if (pattern.length > MAX_PATTERN_CHARACTERS)
    return {
      kind: "invalid",
      reason: `the pattern has ${pattern.length} characters, more than ${MAX_PATTERN_CHARACTERS}`,
    }
  if (RUNAWAY.test(pattern) || /\)\s*[+*{][^)]*\)\s*[+*{]/.test(pattern))
    return {
      kind: "invalid",
      reason:
        "a repeated group with a repetition or a choice in it, or a back-reference, may never end; use a plain text or a simpler pattern",
    }
  try {
    const expression = new RegExp(pattern, flags)
    return { kind: "search", find: (line) => line.slice(0, MAX_SEARCHED_LINE).search(expression) }
  } catch (error) {
    return {
      kind: "invalid",
      reason: `it is no regular expression (${error instanceof Error ? error.message : String(error)})`,
    }
  }
}
