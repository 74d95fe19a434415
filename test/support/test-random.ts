import { onTestFailed } from "vitest"
import { REPLAY, SEED } from "./effort.ts"
import { createRandom } from "./random.ts"

/** Random numbers for the running test; `BATON_SEED`, which is printed when the test fails, gives the same ones again. */
export const testRandom = (): (() => number) => {
  onTestFailed(() => console.error(`The same random numbers again: ${REPLAY}`))
  return createRandom(SEED)
}
