/**
 * `event-to-file.ts EVENTS PER_SECOND FOLDER`: publishes that many states at that pace to an embedded writer, while a reader
 * looks at the statefile each millisecond. Prints, for each event, the ms until a reader first saw it or a newer one.
 */
import { readFileSync, statSync } from "node:fs"
import { join } from "node:path"
import type { StreamLine } from "../../../.opencode/baton/live-state/protocol.ts"
import { createStreamWriter } from "../../../.opencode/baton/live-state/stream-writer.ts"
import { chooseWriter } from "../../../.opencode/baton/live-state/writer-command.ts"

const [events = "0", perSecond = "1", folder = ""] = process.argv.slice(2)
const script = join(import.meta.dirname, "../../../.opencode/baton/live-state/state-writer.ts")
const named = { variable: undefined, setting: undefined, c2c: undefined }
const chosen = chooseWriter({ ...named, runtime: process.execPath, script, directory: folder })
if (chosen.kind === "none") throw new Error(chosen.reason)
const quiet = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} }
const file = join(folder, ".opencode/state/live/bench.json")

let turn = 0
const ts = () => new Date().toISOString()
const snapshot = () => {
  const state = { c2c_session_id: "bench", opencode_pid: process.pid, turn }
  return { event: "state.snapshot", ts: ts(), state } as unknown as StreamLine
}
const { command } = chosen
const writer = createStreamWriter({ command, directory: folder, snapshot, log: quiet, endsByItself: true })
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

let mark = ""
const read = (): number => {
  const stats = statSync(file, { throwIfNoEntry: false })
  if (!stats) return -1
  const found = `${stats.ino} ${stats.mtimeMs}`
  if (found === mark) return -1
  mark = found
  return Number(JSON.parse(readFileSync(file, "utf8")).state.turn)
}

writer.publish(snapshot())
while (read() < 0) await pause(5)
const sentAt: number[] = []
const latencies: number[] = []
const started = performance.now()
const total = Number(events)
while (latencies.length < total) {
  const due = Math.min(total, Math.floor(((performance.now() - started) * Number(perSecond)) / 1_000))
  while (turn < due) {
    sentAt.push(performance.now())
    turn++
    writer.publish({ event: "state.patch", ts: ts(), patch: { turn } })
  }
  const seen = read()
  const now = performance.now()
  while (latencies.length < seen) latencies.push(now - (sentAt[latencies.length] ?? now))
  await pause(1)
}
await writer.stop(1_000)
console.log(JSON.stringify({ latencies }))
process.exit(0)
