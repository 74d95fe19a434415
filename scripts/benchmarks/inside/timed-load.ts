import { appendFileSync } from "node:fs"
import type { Plugin } from "@opencode-ai/plugin"
import { loadBundle } from "./load-bundle.ts"

/** A plugin that loads the bundle from BATON_BENCH_PLUGINS and notes in BATON_BENCH_FILE how long that took. */
export const TimedLoad: Plugin = async (input) => {
  const { BATON_BENCH_PLUGINS: folder = "", BATON_BENCH_FILE: file = "" } = process.env
  const { ms, hooks } = await loadBundle(folder, input)
  appendFileSync(file, `${JSON.stringify({ ms })}\n`)
  for (const { dispose } of hooks) await dispose?.()
  return {}
}
