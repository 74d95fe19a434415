import { describe, expect, test } from "vitest"
import { interleave } from "../../scripts/benchmarks/interleave.ts"
import { median, pairRatios, summarise } from "../../scripts/benchmarks/statistics.ts"

describe("summarise", () => {
  test("takes the middle value of an odd count and the mean of the two middle ones of an even count", () => {
    expect(median([9, 1, 5])).toBe(5)
    expect(median([9, 1, 5, 6])).toBe(5.5)
  })

  test("sorts by value, not by text", () => {
    expect(summarise([10, 9, 100])).toMatchObject({ n: 3, median: 10, min: 9, max: 100 })
  })

  test("is not moved by one wild value", () => {
    expect(summarise([1, 2, 3, 4, 100_000]).median).toBe(3)
  })

  test("leaves the values it was given in their order", () => {
    const values = [3, 1, 2]
    summarise(values)
    expect(values).toEqual([3, 1, 2])
  })

  test.each([
    [6, 1, 6],
    [10, 2, 9],
    [20, 6, 15],
    [30, 10, 21],
  ])("bounds the median of 1 … %i by the order statistics %i and %i", (n, low, high) => {
    expect(summarise(Array.from({ length: n }, (_, index) => index + 1))).toMatchObject({ low, high })
  })

  test("gives no interval for five values, which cannot bound a median at 95 %", () => {
    expect(summarise([1, 2, 3, 4, 5])).toEqual({ n: 5, median: 3, min: 1, max: 5 })
  })

  test("refuses an empty series and a value that is no number", () => {
    expect(() => summarise([])).toThrow("expected at least")
    expect(() => summarise([1, Number.NaN])).toThrow("received NaN")
  })
})

describe("pairRatios", () => {
  test("divides each value by its own partner", () => {
    expect(pairRatios([1, 10, 100], [2, 20, 300])).toEqual([2, 2, 3])
  })

  test("differs from the ratio of the medians, which a machine that slows down would bend", () => {
    const base = [1, 1, 10, 10, 10]
    const other = [2, 2, 2, 20, 20]
    expect(median(pairRatios(base, other))).toBe(2)
    expect(median(other) / median(base)).toBe(0.2)
  })

  test("refuses sides of different length and a base of zero", () => {
    expect(() => pairRatios([1, 2], [1])).toThrow("received 2 and 1")
    expect(() => pairRatios([0], [1])).toThrow("above zero")
  })
})

describe("interleave", () => {
  test("runs the subjects in turn and keeps the values of a round together", async () => {
    const order: string[] = []
    const subject = (name: string, base: number) => async (round: number) => {
      order.push(`${name}${round}`)
      return base + round
    }
    const rounds: number[] = []
    const values = await interleave({ a: subject("a", 10), b: subject("b", 20) }, 3, (round) => rounds.push(round))
    expect(order).toEqual(["a0", "b0", "a1", "b1", "a2", "b2"])
    expect(values).toEqual({ a: [10, 11, 12], b: [20, 21, 22] })
    expect(rounds).toEqual([1, 2, 3])
  })
})
