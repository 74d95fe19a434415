import { CONTEXT_TOKENS, FULL_TOKENS } from "../../test/support/opencode/tokens-2.ts"

/** The demo's part of an OpenCode that differs between its lines. */
export type Line = {
  readonly number: 1 | 2
  /** The scripted model's, in tokens. */
  readonly limit: { readonly context: number; readonly output: number }
  /** A usage so close to the context that OpenCode compacts before the next turn. */
  readonly fullTokens: number
  /** After `opencode run`, so that nothing outlives it and nothing is asked. */
  readonly runArgs: readonly string[]
}

export const LINE_1: Line = {
  number: 1,
  limit: { context: 20_000, output: 2_000 },
  fullTokens: 19_700,
  runArgs: [],
}

export const LINE_2: Line = {
  number: 2,
  limit: { context: CONTEXT_TOKENS, output: 4_000 },
  fullTokens: FULL_TOKENS,
  runArgs: ["--standalone", "--auto"],
}
