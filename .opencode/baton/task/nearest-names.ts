/** Number of edits (a letter added, removed or changed) from one name to the other. */
const distance = (from: string, to: string): number => {
  let row = Array.from({ length: to.length + 1 }, (_, at) => at)
  for (let line = 0; line < from.length; line++) {
    const next = [line + 1]
    for (let column = 0; column < to.length; column++) {
      const changed = (row[column] ?? 0) + (from[line] === to[column] ? 0 : 1)
      next.push(Math.min(changed, (row[column + 1] ?? 0) + 1, (next[column] ?? 0) + 1))
    }
    row = next
  }
  return row[to.length] ?? 0
}

/** Longer names are cut: a misspelt name is short. */
const MAX_COMPARED_CHARACTERS = 100

/** The most similar names, the nearest first. @param count how many at most */
export const nearestNames = (name: string, known: readonly string[], count = 3): string[] => {
  const wanted = name.toLowerCase().slice(0, MAX_COMPARED_CHARACTERS)
  const lastSegment = wanted.slice(wanted.lastIndexOf("/") + 1)
  const score = (candidate: string): number => {
    const lower = candidate.toLowerCase().slice(0, MAX_COMPARED_CHARACTERS)
    // `review` means `skill/review`, however many letters they differ in.
    if (lower.slice(lower.lastIndexOf("/") + 1) === lastSegment) return 0
    return distance(wanted, lower)
  }
  return known
    .map((candidate) => ({ candidate, score: score(candidate) }))
    .sort((a, b) => a.score - b.score || (a.candidate < b.candidate ? -1 : 1))
    .slice(0, count)
    .map(({ candidate }) => candidate)
}
