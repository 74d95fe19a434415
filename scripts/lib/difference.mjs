// @ts-check
/** Lines by which two texts differ, for a person to read. Pure. */

const CONTEXT_LINES = 2
const MOST_LINES = 60
const MOST_COMPARED = 4_000_000

/** @typedef {{ sign: " " | "-" | "+", line: string }} Change */

/**
 * By the longest common subsequence, whose table has before × after places: prompts and sources have some hundred lines.
 * @param {readonly string[]} before @param {readonly string[]} after @returns {Change[]}
 */
const compareLines = (before, after) => {
  const width = after.length + 1
  const lengths = new Uint32Array((before.length + 1) * width)
  const at = (/** @type {number} */ i, /** @type {number} */ j) => lengths[i * width + j] ?? 0
  for (let i = before.length - 1; i >= 0; i -= 1)
    for (let j = after.length - 1; j >= 0; j -= 1)
      lengths[i * width + j] = before[i] === after[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1))
  /** @type {Change[]} */
  const changes = []
  let [i, j] = [0, 0]
  while (i < before.length || j < after.length) {
    if (i < before.length && before[i] === after[j]) {
      changes.push({ sign: " ", line: before[i] ?? "" })
      i += 1
      j += 1
    } else if (j >= after.length || (i < before.length && at(i + 1, j) >= at(i, j + 1)))
      changes.push({ sign: "-", line: before[i++] ?? "" })
    else changes.push({ sign: "+", line: after[j++] ?? "" })
  }
  return changes
}

/**
 * @param {string} before @param {string} after
 * @returns {string[]} lines with `-`, `+` or a space in front; "…" stands for equal lines, and for what is too long to show
 */
export const renderDifference = (before, after) => {
  const [own, newer] = [before.split(/\r?\n/), after.split(/\r?\n/)]
  if (own.length * newer.length > MOST_COMPARED) return ["… (too long to compare here)"]
  const changes = compareLines(own, newer)
  const isNear = (/** @type {number} */ index) =>
    changes.slice(Math.max(0, index - CONTEXT_LINES), index + CONTEXT_LINES + 1).some(({ sign }) => sign !== " ")
  const shown = changes.flatMap(({ sign, line }, index) => {
    if (isNear(index)) return [`${sign} ${line}`.trimEnd()]
    return index > 0 && isNear(index - 1) ? ["…"] : []
  })
  return shown.length > MOST_LINES ? [...shown.slice(0, MOST_LINES), "…"] : shown
}
