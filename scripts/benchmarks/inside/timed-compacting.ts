import { appendFileSync } from "node:fs"
import type { Hooks, Plugin, PluginInput } from "@opencode-ai/plugin"
import { withLedgerStandIn } from "./ledger-stand-in.ts"
import { loadBundle } from "./load-bundle.ts"

const COMPACTING = "experimental.session.compacting"

const timed = (hooks: Hooks, file: string): Hooks => {
  const compacting = hooks[COMPACTING]
  if (!compacting) return hooks
  return {
    ...hooks,
    [COMPACTING]: async (input, output) => {
      const started = performance.now()
      await compacting(input, output)
      const ms = performance.now() - started
      const prompt = output.prompt?.length ?? 0
      const block = output.context.at(-1)?.length ?? 0
      appendFileSync(file, `${JSON.stringify({ sessionID: input.sessionID, ms, prompt, block })}\n`)
    },
  }
}

/**
 * The bundle's compaction plugin from BATON_BENCH_PLUGINS with a clock around its compacting hook, which writes to
 * BATON_BENCH_FILE. With BATON_BENCH_LEDGER=stand-in, prog answers in process.
 */
export const TimedCompacting: Plugin = async (input) => {
  const { BATON_BENCH_PLUGINS: folder = "", BATON_BENCH_FILE: file = "", BATON_BENCH_LEDGER: ledger } = process.env
  const given: PluginInput = ledger === "stand-in" ? { ...input, $: withLedgerStandIn(input.$) } : input
  const { hooks } = await loadBundle(folder, given)
  const own = hooks.find((each) => each[COMPACTING])
  if (!own) throw new Error(`no plugin in ${folder} has ${COMPACTING}`)
  return timed(own, file)
}
