import { test } from "vitest"
import { LEFT_OUT_ON_2, type Reason } from "../../left-out-on-2.ts"
import { EFFORT } from "../effort.ts"
import { BOTH_ENDS, IS_MATRIX, isLine2, LINE_2, NEWEST, OLDEST, type OpenCodeBinary } from "./opencode-binary.ts"

/** With an effort above 1 all tests run on every end: `./scripts/test --all`. */
export const IS_NIGHT = EFFORT > 1

const isOnEveryEnd = IS_NIGHT || IS_MATRIX

/** The ends on which case `index` runs: one of them in turn, so that each end gets half of the cases; at night all. */
export const endsOf = (index: number): readonly OpenCodeBinary[] =>
  BOTH_ENDS.filter((_, end) => isOnEveryEnd || end === index % BOTH_ENDS.length)

/** The same, and OpenCode 2. */
export const linesOf = (index: number): readonly OpenCodeBinary[] => [...endsOf(index), ...LINE_2]

/** The cases that run on this end, as by `endsOf`; on OpenCode 2 the first, at night all. */
export const casesOf = <Case>(binary: OpenCodeBinary, cases: readonly Case[]): Case[] =>
  cases.filter((_, index) => (isLine2(binary) ? IS_NIGHT || index === 0 : endsOf(index).includes(binary)))

type AddTest = (name: string, body: () => Promise<void> | void, timeoutMs?: number) => void

/** Adds tests that run on each line, but for those that `left-out-on-2.ts` leaves out. */
export const testsOn =
  (binary: OpenCodeBinary): AddTest =>
  (name, body, timeoutMs) => {
    const isLeftOut = Object.keys(LEFT_OUT_ON_2).some((sentence) => name.endsWith(`: ${sentence}`))
    if (!(isLine2(binary) && isLeftOut)) test(name, body, timeoutMs)
  }

/**
 * Adds tests that run on one end each, by turns, and on OpenCode 2 as by `testsOn`; at night on all. For what does not depend on OpenCode's
 * version, or is shown on both ends by another test.
 */
export const testsOnce = (binary: OpenCodeBinary): AddTest => {
  const add = testsOn(binary)
  let count = 0
  return (name, body, timeoutMs): void => {
    if (endsOf(count++).includes(binary) || isLine2(binary)) add(name, body, timeoutMs)
  }
}

/** False on OpenCode 2: a part of a test that is left out there, for this reason. */
export const offers = (binary: Pick<OpenCodeBinary, "version">, _reason: Reason): boolean => !isLine2(binary)

/** The ends for a single long case: the newest; at night all. */
export const NEWEST_OR_ALL: readonly OpenCodeBinary[] = isOnEveryEnd ? BOTH_ENDS : [NEWEST]
/** The same for one that any end serves: the oldest, which starts with half of the work. */
export const OLDEST_OR_ALL: readonly OpenCodeBinary[] = isOnEveryEnd ? BOTH_ENDS : [OLDEST]
/** The newest, and OpenCode 2. */
export const NEWEST_LINES: readonly OpenCodeBinary[] = [...NEWEST_OR_ALL, ...LINE_2]
