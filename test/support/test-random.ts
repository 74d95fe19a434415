import { onTestFailed } from "vitest"
import { REPLAY, SEED } from "./effort.ts"

/** mulberry32: pseudo-random numbers from 0 to 1; the same seed gives the same numbers. */
export const createRandom = (seed: number): (() => number) => {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}

/** Random numbers for the running test; `BATON_SEED`, which is printed when the test fails, gives the same ones again. */
export const testRandom = (): (() => number) => {
  onTestFailed(() => console.error(`The same random numbers again: ${REPLAY}`))
  return createRandom(SEED)
}
