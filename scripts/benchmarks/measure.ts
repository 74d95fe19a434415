import type { Figure, Unit } from "./results.ts"

const rounded = (value: number): number => Number(value.toPrecision(4))

/** @throws when there is no value, or one that is not finite */
const sorted = (values: readonly number[]): number[] => {
  if (values.length > 0 && values.every(Number.isFinite)) return values.toSorted((a, b) => a - b)
  throw new Error(`expected finite numbers, received [${values.join(" ")}]`)
}

const at = (values: readonly number[], index: number): number => values.at(index) ?? Number.NaN

/** @throws when `values` is empty or holds a value that is not finite */
export const median = (values: readonly number[]): number => {
  const ordered = sorted(values)
  return (at(ordered, (ordered.length - 1) >> 1) + at(ordered, ordered.length >> 1)) / 2
}

/** Order statistics that bound the median with a confidence of 95 %, without assumptions about the distribution. */
const boundsOf = (ordered: readonly number[]): { low?: number; high?: number } => {
  const n = ordered.length
  let [tail, combinations, rank] = [0, 1, -1]
  for (let k = 0; k < n / 2; k++) {
    tail += combinations / 2 ** n
    if (tail > 0.025) break
    rank = k
    combinations = (combinations * (n - k)) / (k + 1)
  }
  return rank < 0 ? {} : { low: rounded(at(ordered, rank)), high: rounded(at(ordered, n - 1 - rank)) }
}

/** A figure from its raw values, to four significant digits; its median is promised to stay under `below`. */
export const toFigure = (id: string, what: string, unit: Unit, values: readonly number[], below?: number) => {
  const ordered = sorted(values)
  const promise = below === undefined ? {} : { below }
  const spread = { median: rounded(median(ordered)), min: rounded(at(ordered, 0)), max: rounded(at(ordered, -1)) }
  const figure = { id, what, unit, ...promise, n: ordered.length, ...spread, ...boundsOf(ordered) }
  return figure satisfies Omit<Figure, "version">
}

/** The ratio of each pair: a slow machine slows both sides. @throws on lists of unequal length, or a base of zero */
export const pairRatios = (base: readonly number[], other: readonly number[]): number[] => {
  if (base.length !== other.length)
    throw new Error(`expected pairs, received ${base.length} and ${other.length} values`)
  return base.map((value, index) => {
    if (!(value > 0)) throw new Error(`expected a base above zero, received ${value}`)
    return at(other, index) / value
  })
}

/**
 * Runs the subjects in turn, A B A B …, `rounds` times, so that a slow machine slows all of them.
 *
 * @returns each subject's values in order: equal indexes are one pair
 */
export const interleave = async <Name extends string>(
  subjects: Record<Name, (round: number) => Promise<number> | number>,
  rounds: number,
): Promise<Record<Name, number[]>> => {
  const names = Object.keys(subjects) as Name[]
  const values = Object.fromEntries(names.map((name) => [name, [] as number[]])) as Record<Name, number[]>
  for (let round = 0; round < rounds; round++) for (const name of names) values[name].push(await subjects[name](round))
  return values
}
