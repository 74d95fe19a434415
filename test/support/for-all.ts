import fc, { type Arbitrary } from "fast-check"
import { runs } from "./effort.ts"

/**
 * Asserts that something holds for random values, which come from the seed of the run.
 *
 * @param tries their number, multiplied by `BATON_EFFORT`
 * @param holds throws where it does not; the value that it returns is not looked at
 */
export const forAll = <Values extends [unknown, ...unknown[]]>(
  tries: number,
  arbitraries: { [At in keyof Values]: Arbitrary<Values[At]> },
  holds: (...values: Values) => void,
): void =>
  fc.assert(
    fc.property<Values>(...arbitraries, (...values) => {
      holds(...values)
    }),
    { numRuns: runs(tries) },
  )
