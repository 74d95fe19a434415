/**
 * `live-state-cost.ts cost FOLDER EVENTS ROUNDS`: µs per event in OpenCode's process, up to the bytes in the writer's pipe, and
 * per event without a change.
 * `… latencies FOLDER EVENTS PER_SECOND`: for each event to an embedded writer, the ms until a reader that polls each millisecond
 * saw it or a newer one in the statefile.
 * `… growth FOLDER PATCHES`: MB by which a writer at full speed is larger after all patches than after a tenth of them (Linux's
 * `/proc`).
 */
import { spawn } from "node:child_process"
import { once } from "node:events"
import { readFileSync, statSync } from "node:fs"
import { join } from "node:path"
import { setTimeout as wait } from "node:timers/promises"
import { readEvent } from "../../../.opencode/baton/live-state/events.ts"
import type { StreamLine } from "../../../.opencode/baton/live-state/protocol.ts"
import { createPublisher } from "../../../.opencode/baton/live-state/publisher.ts"
import { createStreamWriter, type WriterCommand } from "../../../.opencode/baton/live-state/stream-writer.ts"
import { interleave } from "../measure.ts"
import { residentMB } from "./process-memory.ts"

const [what = "", directory = "", first = "", second = ""] = process.argv.slice(2)
const script = join(import.meta.dirname, "../../../.opencode/baton/live-state/state-writer.ts")
const options = ["--no-env-file", "--config=/dev/null", "run", "--no-install", script, directory]
const env = { BUN_BE_BUN: "1" }
const log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} }
const ts = () => new Date().toISOString()
const identity = { c2c_session_id: "bench", c2c_alias: null, opencode_pid: process.pid, plugin_started_at: ts() }
const file = join(directory, ".opencode/state/live/bench.json")
const readState = () => JSON.parse(readFileSync(file, "utf8")).state
const openWriter = (command: WriterCommand, snapshot: () => StreamLine) => {
  const writer = createStreamWriter({ command, directory, snapshot, log, endsByItself: true })
  writer.publish(snapshot())
  return writer
}

/** Fits into a pipe, which is emptied before the next batch, outside of the measured time. */
const BATCH = 50
type Event = { type: string; properties: object }
const sessionID = "ses_bench"
const BUSY = { type: "session.status", properties: { sessionID, status: { type: "busy" } } }
const IDLE = { type: "session.status", properties: { sessionID, status: { type: "idle" } } }
const ENDED = { type: "session.idle", properties: { sessionID } }
const INFO = { id: "msg_1", sessionID, role: "assistant", time: {} }
const MESSAGE = { type: "message.updated", properties: { info: INFO } }

const measureCost = async (events: number, rounds: number) => {
  const publisher = createPublisher({ identity, strict: false, now: () => new Date() })
  publisher.receive({ kind: "born", sessionID, parentID: undefined })
  const writer = openWriter({ argv: ["/bin/sh", "-c", "exec cat > /dev/null"] }, publisher.snapshot)
  let published = 0
  const send = (event: Event): void => {
    const lines = readEvent(event).flatMap((observed) => publisher.receive(observed) ?? [])
    for (const line of lines) writer.publish(line)
    published += lines.length
  }
  const costOf = (one: Event, other: Event, expected: number) => async (): Promise<number> => {
    const before = published
    let ms = 0
    for (let sent = 0; sent < events; sent += BATCH) {
      const started = performance.now()
      for (let each = 0; each < BATCH; each++) send(each % 2 === 0 ? one : other)
      ms += performance.now() - started
      await wait(1)
    }
    if (published - before === expected) return (ms * 1_000) / events
    throw new Error(`expected ${expected} lines, published ${published - before}`)
  }
  const subjects = { published: costOf(BUSY, ENDED, events), ignored: costOf(IDLE, MESSAGE, 0) }
  // The first round warms up the code.
  await interleave(subjects, 1)
  return interleave(subjects, rounds)
}

const measureLatencies = async (total: number, perSecond: number) => {
  let turn = 0
  const snapshot = () => ({ event: "state.snapshot", ts: ts(), state: { ...identity, turn } }) as unknown as StreamLine
  const writer = openWriter({ argv: [process.execPath, ...options], env }, snapshot)
  let mark = ""
  const newest = (): number => {
    const stats = statSync(file, { throwIfNoEntry: false })
    const found = stats ? `${stats.ino} ${stats.mtimeMs}` : mark
    if (found === mark) return -1
    mark = found
    return Number(readState().turn)
  }
  while (newest() < 0) await wait(5)
  const [sentAt, ms]: [number[], number[]] = [[], []]
  const started = performance.now()
  while (ms.length < total) {
    const due = Math.min(total, Math.floor(((performance.now() - started) * perSecond) / 1_000))
    while (turn < due) {
      sentAt.push(performance.now())
      turn++
      writer.publish({ event: "state.patch", ts: ts(), patch: { turn } })
    }
    const [seen, now] = [newest(), performance.now()]
    while (ms.length < seen) ms.push(now - (sentAt[ms.length] ?? now))
    await wait(1)
  }
  await writer.stop(1_000)
  return { ms }
}

const measureGrowth = async (total: number) => {
  const stdio: ["pipe", "ignore", "inherit"] = ["pipe", "ignore", "inherit"]
  const writer = spawn(process.execPath, options, { env: { ...process.env, ...env }, stdio })
  const send = async (line: unknown): Promise<void> => {
    if (!writer.stdin.write(`${JSON.stringify(line)}\n`)) await once(writer.stdin, "drain")
  }
  await send({ event: "state.snapshot", ts: ts(), state: identity })
  let early = 0
  for (let turn = 1; turn <= total; turn++) {
    const agent = { turn_count: turn, last_step: { at: ts(), details: { turn } } }
    await send({ event: "state.patch", ts: ts(), patch: { agent } })
    if (turn === total / 10) early = residentMB(writer.pid)
  }
  const late = residentMB(writer.pid)
  writer.stdin.end()
  await once(writer, "exit")
  const kept = Number(readState().agent.turn_count)
  if (kept === total) return { mb: [late - early] }
  throw new Error(`expected turn ${total}, the statefile has ${kept}`)
}

const measures = { cost: measureCost, latencies: measureLatencies, growth: measureGrowth }
console.log(JSON.stringify(await measures[what as keyof typeof measures](Number(first), Number(second))))
process.exit(0)
