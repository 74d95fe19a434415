import { EFFORT } from "../effort.ts"
import { BOTH_ENDS, IS_MATRIX, NEWEST, type OpenCodeBinary } from "./opencode-binary.ts"

/** With more effort than usual everything runs, on every end: `./scripts/test --all`. */
export const IS_NIGHT = EFFORT > 1

const isOnEveryEnd = IS_NIGHT || IS_MATRIX

/** Where the case at `index` runs: on one of the ends by turns, so that each meets half of the cases; at night on all. */
export const endsOf = (index: number): readonly OpenCodeBinary[] =>
  BOTH_ENDS.filter((_, end) => isOnEveryEnd || end === index % BOTH_ENDS.length)

/** Where something long runs that is one case: on the newest; at night on all. */
export const NEWEST_OR_ALL: readonly OpenCodeBinary[] = isOnEveryEnd ? BOTH_ENDS : [NEWEST]
