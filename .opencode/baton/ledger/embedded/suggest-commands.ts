/** Which command was meant, as cobra guesses. Pure. */

const MAX_DISTANCE = 2

/** Levenshtein distance, ignoring case. */
const distance = (left: string, right: string): number => {
  let row = Array.from({ length: right.length + 1 }, (_, index) => index)
  for (const [i, a] of Array.from(left.toLowerCase()).entries()) {
    const next = [i + 1]
    for (const [j, b] of Array.from(right.toLowerCase()).entries()) {
      const replaced = (row[j] ?? 0) + (a === b ? 0 : 1)
      next.push(Math.min(replaced, (row[j + 1] ?? 0) + 1, (next[j] ?? 0) + 1))
    }
    row = next
  }
  return row.at(-1) ?? 0
}

/** Names near what was typed: two edits away at most, or beginning with it. */
export const suggestCommands = (typed: string, names: readonly string[]): string[] =>
  names.filter((name) => distance(typed, name) <= MAX_DISTANCE || name.startsWith(typed.toLowerCase()))
