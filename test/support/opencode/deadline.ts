import { spawnSync } from "node:child_process"
import type { OpenCodeBinary } from "./opencode-binary.ts"

/** `opencode --version` on a machine that has nothing else to do. */
const QUIET_START_MS = 500

/**
 * How long something may take here that takes `ms` at most on a quiet machine. `BATON_SLOWNESS` says how many times slower this
 * one is (1 without it); the end-to-end tests measure it when they begin.
 */
export const deadline = (ms: number): number => {
  const slowness = Number(process.env.BATON_SLOWNESS || 1)
  if (slowness >= 1) return Math.round(ms * slowness)
  throw new Error(`BATON_SLOWNESS is '${process.env.BATON_SLOWNESS}': expected a number, at least 1`)
}

/** How many times longer than on a quiet machine OpenCode takes to start now, at least 1; throws when it is another version. */
export const measureSlowness = ({ path, version }: OpenCodeBinary, env: Record<string, string>): number => {
  const started = performance.now()
  const { status, stdout, stderr } = spawnSync(path, ["--version"], { encoding: "utf8", env })
  const tookMs = performance.now() - started
  if (stdout.trim() === version) return Math.max(1, Math.round((10 * tookMs) / QUIET_START_MS) / 10)
  throw new Error(`${path} is not OpenCode ${version}: --version exited with ${status} and said '${stdout}' ${stderr}`)
}
