/**
 * `publish-cost.ts EVENTS ROUNDS`: prints what an event that is published costs OpenCode's process, from the event to the
 * bytes in the writer's pipe, in µs an event; one of another kind that the feature ignores beside it.
 */
import { readEvent } from "../../../.opencode/baton/live-state/event-observation.ts"
import { createPublisher } from "../../../.opencode/baton/live-state/publisher.ts"
import { createStreamWriter } from "../../../.opencode/baton/live-state/stream-writer.ts"
import { interleave } from "../interleave.ts"

const [events = "0", rounds = "0"] = process.argv.slice(2)
/** As many as a pipe holds; what is in it is read before the next, outside of the time. */
const BATCH = 50
const ROOT = "ses_bench"
const quiet = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} }

const identity = {
  c2c_session_id: "opencode-bench",
  c2c_alias: null,
  opencode_pid: process.pid,
  plugin_started_at: new Date().toISOString(),
}
const publisher = createPublisher({ identity, strict: false, now: () => new Date() })
const command = { argv: ["/bin/sh", "-c", "exec cat > /dev/null"] } as const
const { snapshot } = publisher
const writer = createStreamWriter({ command, directory: process.cwd(), snapshot, log: quiet, endsByItself: true })
publisher.receive({ kind: "born", sessionID: ROOT, parentID: undefined })
writer.publish(publisher.snapshot())

const published = [
  { type: "session.status", properties: { sessionID: ROOT, status: { type: "busy" } } },
  { type: "session.idle", properties: { sessionID: ROOT } },
]
const ignored = [
  { type: "session.status", properties: { sessionID: ROOT, status: { type: "idle" } } },
  { type: "message.updated", properties: { info: { id: "msg_1", sessionID: ROOT, role: "assistant", time: {} } } },
]

let lines = 0
const send = (event: { type: string; properties: unknown }): void => {
  for (const observed of readEvent(event)) {
    const line = publisher.receive(observed)
    if (!line) continue
    lines++
    writer.publish(line)
  }
}

const costOf = async (kinds: readonly { type: string; properties: unknown }[], expected: number): Promise<number> => {
  const before = lines
  let ms = 0
  for (let sent = 0; sent < Number(events); sent += BATCH) {
    const started = performance.now()
    for (let each = 0; each < BATCH; each++) send(kinds[each % kinds.length] as (typeof kinds)[number])
    ms += performance.now() - started
    await new Promise((resolve) => setTimeout(resolve, 1))
  }
  if (lines - before !== expected) throw new Error(`expected ${expected} lines, published ${lines - before}`)
  return (ms * 1_000) / Number(events)
}

const publishing = () => costOf(published, Number(events))
const ignoring = () => costOf(ignored, 0)
await publishing()
await ignoring()
const values = await interleave({ published: publishing, ignored: ignoring }, Number(rounds))
await writer.stop(1_000)
console.log(JSON.stringify(values))
process.exit(0)
