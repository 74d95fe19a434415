import { expect, test } from "vitest"
import { inPool } from "../../scripts/benchmarks/pool.ts"

test("a pool works on so many at once and gives the outcomes in order", async () => {
  let busy = 0
  let most = 0
  const outcomes = await inPool([3, 1, 2], 2, async (item) => {
    busy++
    most = Math.max(most, busy)
    for (let tick = 0; tick < item; tick++) await Promise.resolve()
    busy--
    return item * 10
  })
  expect(outcomes).toEqual([30, 10, 20])
  expect(most).toBe(2)
})
