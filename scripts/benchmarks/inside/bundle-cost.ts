/**
 * `bundle-cost.ts PLUGINS_FOLDER PROJECT CALLS ROUNDS`: prints costs of the bundle in this fresh process. In ms: its load, the
 * first message of an existing session (a new session loads less), and zod. In µs per call, alternating in rounds of CALLS: a
 * token delta, and an empty async function for comparison.
 */
import { interleave } from "../measure.ts"
import { fakeInput, loadBundle } from "./load-bundle.ts"

type EventHook = (input: { event: unknown }) => Promise<void>
type MessageHook = (input: { sessionID: string }, output: { message: object; parts: object[] }) => Promise<void>

const [folder = "", project = "", calls = "0", rounds = "0"] = process.argv.slice(2)
// OpenCode has loaded these modules before it loads plugins.
for (const name of ["child_process", "crypto", "fs", "fs/promises", "os", "stream", "url"]) await import(`node:${name}`)
const { ms, hooks } = await loadBundle(folder, fakeInput(project))

const timed = async (work: () => Promise<unknown>): Promise<number> => {
  const started = performance.now()
  await work()
  return performance.now() - started
}
const [sessionID, messageID] = [`ses_bench${process.pid}`, "msg_bench"]
const part = { id: "prt_bench", sessionID, messageID, type: "text", text: "# Worker\n\nTask: ts-b54507\n" }
const messageHooks = hooks.flatMap((each) => each["chat.message"] ?? []) as unknown as MessageHook[]
const hear = (hook: MessageHook) => {
  const message = { id: messageID, sessionID, role: "user", time: { created: Date.now() } }
  return hook({ sessionID }, { message, parts: [{ ...part }] })
}
const message = await timed(() => Promise.all(messageHooks.map(hear)))
const zod = await timed(() => import("@opencode-ai/plugin/tool"))

const handlers = hooks.flatMap(({ event }) => (event ? [event as EventHook] : []))
const properties = { sessionID, messageID, partID: part.id, field: "text", delta: "token" }
const deltas = Array.from({ length: 1_000 }, (_, index) => ({
  event: { id: `evt_${index}`, type: "message.part.delta", properties: { ...properties } },
}))

/** OpenCode calls every listener with each event and awaits none. */
const microsecondsPerCall = async (listeners: readonly EventHook[]): Promise<number> => {
  let last: Promise<void> = Promise.resolve()
  const started = performance.now()
  for (let call = 0; call < Number(calls); call++)
    for (const listen of listeners) last = listen(deltas[call % deltas.length] ?? { event: undefined })
  await last
  return ((performance.now() - started) * 1_000) / Number(calls)
}
const subjects = { delta: () => microsecondsPerCall(handlers), nothing: () => microsecondsPerCall([async () => {}]) }
// The first round warms up the code.
if (Number(rounds) > 0) await interleave(subjects, 1)
const { delta, nothing } = await interleave(subjects, Number(rounds))
console.log(JSON.stringify({ load: [ms], message: [message], zod: [zod], delta, nothing }))
process.exit(0)
