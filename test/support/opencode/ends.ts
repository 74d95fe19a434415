import { test } from "vitest"
import { EFFORT } from "../effort.ts"
import { BOTH_ENDS, IS_MATRIX, NEWEST, type OpenCodeBinary } from "./opencode-binary.ts"

/** With an effort above 1 all tests run on every end: `./scripts/test --all`. */
export const IS_NIGHT = EFFORT > 1

const isOnEveryEnd = IS_NIGHT || IS_MATRIX

/** The ends on which case `index` runs: one of them in turn, so that each end gets half of the cases; at night all. */
export const endsOf = (index: number): readonly OpenCodeBinary[] =>
  BOTH_ENDS.filter((_, end) => isOnEveryEnd || end === index % BOTH_ENDS.length)

/** The cases that run on this end, as by `endsOf`. */
export const casesOf = <Case>(binary: OpenCodeBinary, cases: readonly Case[]): Case[] =>
  cases.filter((_, index) => endsOf(index).includes(binary))

/**
 * Adds tests that run on one end each, by turns; at night on all. For what does not depend on OpenCode's version, or is shown
 * on both ends by another test.
 */
export const testsOnce = (binary: OpenCodeBinary) => {
  let count = 0
  return (name: string, body: () => Promise<void> | void, timeoutMs?: number): void => {
    if (endsOf(count++).includes(binary)) test(name, body, timeoutMs)
  }
}

/** The ends for a single long case: the newest; at night all. */
export const NEWEST_OR_ALL: readonly OpenCodeBinary[] = isOnEveryEnd ? BOTH_ENDS : [NEWEST]
