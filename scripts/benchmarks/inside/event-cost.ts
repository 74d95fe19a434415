/**
 * `event-cost.ts PLUGINS_FOLDER PROJECT CALLS ROUNDS`: prints what a token delta costs the bundle, in µs a call, and an
 * empty async function beside it, in turn.
 */
import { interleave } from "../interleave.ts"
import { fakeInput } from "./fake-input.ts"
import { loadBundle } from "./load-bundle.ts"

type EventHook = (input: { event: unknown }) => Promise<void>

const [folder = "", project = "", calls = "0", rounds = "0"] = process.argv.slice(2)
const { hooks } = await loadBundle(folder, fakeInput(project))
const handlers = hooks.flatMap(({ event }) => (event ? [event as EventHook] : []))
if (handlers.length === 0) throw new Error(`no plugin in ${folder} listens to events`)

const delta = (index: number) => ({
  event: {
    id: `evt_${index}`,
    type: "message.part.delta",
    properties: { sessionID: "ses_bench", messageID: "msg_bench", partID: "prt_bench", field: "text", delta: "token" },
  },
})

/** OpenCode calls every listener with each event and awaits none. */
const microsecondsPerCall = async (listeners: readonly EventHook[]): Promise<number> => {
  const total = Number(calls)
  const inputs = Array.from({ length: 1_000 }, (_, index) => delta(index))
  let last: Promise<void> = Promise.resolve()
  const started = performance.now()
  for (let call = 0; call < total; call++) {
    const input = inputs[call % inputs.length] ?? delta(0)
    for (const listen of listeners) last = listen(input)
  }
  await last
  return ((performance.now() - started) * 1_000) / total
}

const nothing: EventHook = async () => {}
await microsecondsPerCall(handlers)
await microsecondsPerCall([nothing])
const values = await interleave(
  { bundle: () => microsecondsPerCall(handlers), nothing: () => microsecondsPerCall([nothing]) },
  Number(rounds),
)
console.log(JSON.stringify(values))
process.exit(0)
