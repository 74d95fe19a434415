/** What a series of measurements comes to. */
export type Summary = {
  n: number
  median: number
  min: number
  max: number
  /** Bounds between which the true median lies with a confidence of about 95 %; absent for fewer than 6 values. */
  low?: number
  high?: number
}

const sorted = (values: readonly number[]): number[] => values.toSorted((a, b) => a - b)

const at = (values: readonly number[], index: number): number => {
  const value = values[index]
  if (value === undefined) throw new Error(`expected at least ${index + 1} values, received ${values.length}`)
  return value
}

/** @throws when `values` is empty */
export const median = (values: readonly number[]): number => {
  const ordered = sorted(values)
  const middle = ordered.length >> 1
  return ordered.length % 2 === 1 ? at(ordered, middle) : (at(ordered, middle - 1) + at(ordered, middle)) / 2
}

/** Order statistics that bound the median: no assumption about how times are distributed. */
const medianBounds = (ordered: readonly number[]): { low: number; high: number } | undefined => {
  const n = ordered.length
  let tail = 0
  let combinations = 1
  let rank = -1
  for (let k = 0; k < n / 2; k++) {
    tail += combinations / 2 ** n
    if (tail > 0.025) break
    rank = k
    combinations = (combinations * (n - k)) / (k + 1)
  }
  return rank < 0 ? undefined : { low: at(ordered, rank), high: at(ordered, n - 1 - rank) }
}

/** @throws when `values` is empty or holds something that is no finite number */
export const summarise = (values: readonly number[]): Summary => {
  const wrong = values.find((value) => !Number.isFinite(value))
  if (wrong !== undefined) throw new Error(`expected finite numbers, received ${wrong}`)
  const ordered = sorted(values)
  return {
    n: ordered.length,
    median: median(ordered),
    min: at(ordered, 0),
    max: at(ordered, ordered.length - 1),
    ...medianBounds(ordered),
  }
}

/**
 * Each pair's own ratio: what slowed the machine slowed both sides of a pair.
 *
 * @throws when the sides differ in length or a base is not above zero
 */
export const pairRatios = (base: readonly number[], other: readonly number[]): number[] => {
  if (base.length !== other.length)
    throw new Error(`expected pairs, received ${base.length} and ${other.length} values`)
  return base.map((value, index) => {
    if (!(value > 0)) throw new Error(`expected a base above zero, received ${value}`)
    return at(other, index) / value
  })
}
