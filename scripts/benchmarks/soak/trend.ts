import { median } from "../statistics.ts"

/** How a quantity changes along a run: the median of the slopes of all pairs of points (Theil and Sen). */
export type Trend = {
  n: number
  /** Medians of the first and the last tenth, which is at least one point. */
  first: number
  last: number
  /** Per unit of x. */
  slope: number
  /** Bounds of the slope with a confidence of about 95 % (Kendall); points that hang together make them too narrow. */
  low: number
  high: number
}

const NORMAL_95 = 1.96

const tenth = (count: number): number => Math.max(1, Math.floor(count / 10))

/** @throws when there are fewer than two points, or not as many values as points */
export const findTrend = (at: readonly number[], values: readonly number[]): Trend => {
  const n = values.length
  if (n < 2 || at.length !== n) throw new Error(`expected two points or more, received ${at.length} and ${n}`)
  const slopes = values
    .flatMap((value, i) =>
      values.slice(i + 1).map((later, k) => (later - value) / ((at[i + k + 1] ?? 0) - (at[i] ?? 0))),
    )
    .sort((a, b) => a - b)
  const reach = NORMAL_95 * Math.sqrt((n * (n - 1) * (2 * n + 5)) / 18)
  const pick = (rank: number): number => slopes[Math.min(slopes.length - 1, Math.max(0, Math.round(rank)))] ?? 0
  return {
    n,
    first: median(values.slice(0, tenth(n))),
    last: median(values.slice(-tenth(n))),
    slope: median(slopes),
    low: pick((slopes.length - reach) / 2),
    high: pick((slopes.length + reach) / 2),
  }
}

/** Pairs of the first and the last tenth, in order. */
export const firstAndLastTenth = (values: readonly number[]): { first: number[]; last: number[] } => {
  const count = tenth(values.length)
  return { first: values.slice(0, count), last: values.slice(-count) }
}
