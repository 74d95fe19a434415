import { spawnSync } from "node:child_process"
import type { OpenCodeBinary } from "./opencode-binary.ts"

/** Duration of `opencode --version` on an idle machine. */
const QUIET_START_MS = 500

/**
 * The deadline on this machine for work that takes at most `ms` on an idle one. `BATON_SLOWNESS` tells how many times slower this
 * machine is (default 1); the end-to-end tests measure it when they start.
 */
export const deadline = (ms: number): number => {
  const slowness = Number(process.env.BATON_SLOWNESS || 1)
  if (slowness >= 1) return Math.round(ms * slowness)
  throw new Error(`BATON_SLOWNESS is '${process.env.BATON_SLOWNESS}': expected a number, at least 1`)
}

/** Ratio of OpenCode's present start time to that of an idle machine, at least 1; throws if the version differs. */
export const measureSlowness = ({ path, version }: OpenCodeBinary, env: Record<string, string>): number => {
  const started = performance.now()
  const { status, stdout, stderr } = spawnSync(path, ["--version"], { encoding: "utf8", env })
  const tookMs = performance.now() - started
  if (stdout.trim() === version) return Math.max(1, Math.round((10 * tookMs) / QUIET_START_MS) / 10)
  throw new Error(`${path} is not OpenCode ${version}: --version exited with ${status} and said '${stdout}' ${stderr}`)
}
