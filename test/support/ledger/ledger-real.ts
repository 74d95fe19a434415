import { spawnSync } from "node:child_process"
import { join } from "node:path"
import { expect, test } from "vitest"
import { REPOSITORY } from "../opencode/opencode-binary.ts"
import type { LedgerProgram } from "./ledger-process.ts"

export type RealProg =
  | { readonly kind: "found"; readonly program: LedgerProgram }
  | { readonly kind: "missing"; readonly reason: string }

const BUILD_DEADLINE_MS = 300_000

/** Builds the pinned real prog at the first call, on a machine with Go. */
export const findRealProg = (): RealProg => {
  const script = join(REPOSITORY, "scripts", "real-prog")
  const { status, stdout, stderr, error } = spawnSync(script, { encoding: "utf8", timeout: BUILD_DEADLINE_MS })
  if (status === 0) return { kind: "found", program: { name: "real prog", command: stdout.trim(), environment: {} } }
  return { kind: "missing", reason: error?.message ?? stderr.trim() }
}

/** Registers one test in place of those that need the real prog; it warns, so that a run shows what it left out. */
export const registerMissingRealProg = (what: string, reason: string): void => {
  test(`NOT RUN, for want of the real prog: ${what}`, () => {
    console.warn(`NOT RUN: ${what}\n${reason}`)
    expect(process.env.BATON_REQUIRE_REAL_PROG, `the real prog is required here: ${reason}`).not.toBe("1")
  })
}
