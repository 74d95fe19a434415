import { BOTH_ENDS, type OpenCodeBinary } from "../../test/support/opencode-binary.ts"
import {
  FEATURE_NAMES,
  type FeatureName,
  REQUEST_NAMES,
  type RecordedRequests,
  recordRequests,
} from "../../test/support/request-scenario.ts"
import type { Benchmark } from "./benchmark.ts"
import { inPool } from "./pool.ts"
import type { AdditionColumn, AdditionRow } from "./results.ts"

/** Nothing is timed here. */
const AT_ONCE = 2

const rowsOf = (
  { version }: OpenCodeBinary,
  plain: RecordedRequests,
  recorded: readonly (readonly [AdditionColumn, RecordedRequests])[],
): AdditionRow[] =>
  REQUEST_NAMES.map((request) => {
    const changed = recorded.filter(([, requests]) => requests[request].text !== plain[request].text)
    const added = changed.map(([column, requests]) => [
      column,
      requests[request].characters - plain[request].characters,
    ])
    return { version, request, plain: plain[request].characters, added: Object.fromEntries(added) }
  })

const SUBJECTS: readonly (readonly [AdditionColumn | "plain", readonly FeatureName[]])[] = [
  ["plain", []],
  ...FEATURE_NAMES.map((name) => [name, [name]] as const),
  ["bundle", FEATURE_NAMES],
]

/** What each feature alone, and all of them, add to each kind of request. */
export const measureTokens: Benchmark = async ({ quick, say }) => {
  const additions: AdditionRow[] = []
  for (const binary of BOTH_ENDS) {
    const subjects = quick ? SUBJECTS.filter(([name]) => name === "plain" || name === "bundle") : SUBJECTS
    say(`tokens on ${binary.version}: the same sessions ${subjects.length} times`)
    const recorded = await inPool(subjects, AT_ONCE, ([, features]) => recordRequests(binary, features))
    const [plain, ...others] = recorded
    if (!plain) throw new Error("plain OpenCode was not recorded")
    const named = subjects.slice(1).flatMap(([name], index) => {
      const requests = others[index]
      return requests && name !== "plain" ? [[name, requests] as const] : []
    })
    additions.push(...rowsOf(binary, plain, named))
  }
  return { figures: [], additions }
}
