/**
 * `live-state-cost.ts cost FOLDER EVENTS ROUNDS`: µs per event in OpenCode's process, up to the bytes in a foreign writer's pipe,
 * and per event without a change.
 * `… latencies FOLDER EVENTS PER_SECOND`: for each event, the ms until a reader that polls each millisecond saw it or a newer one
 * in Baton's statefile.
 * `… growth FOLDER EVENTS`: MB of the heap in use after all events, more than after a tenth of them.
 */
import { readFileSync, statSync } from "node:fs"
import { join } from "node:path"
import { setTimeout as wait } from "node:timers/promises"
import { createStateFolder } from "../../../.opencode/baton/host/state.ts"
import { readEvent } from "../../../.opencode/baton/live-state/events.ts"
import type { LiveState, StreamLine } from "../../../.opencode/baton/live-state/protocol.ts"
import { createPublisher } from "../../../.opencode/baton/live-state/publisher.ts"
import { createStatefileWriter } from "../../../.opencode/baton/live-state/statefile.ts"
import { createStreamWriter } from "../../../.opencode/baton/live-state/stream-writer.ts"
import { interleave } from "../measure.ts"

const [what = "", directory = "", first = "", second = ""] = process.argv.slice(2)
const log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} }
const ts = () => new Date().toISOString()
const identity = { c2c_session_id: "bench", c2c_alias: null, opencode_pid: process.pid, plugin_started_at: ts() }
const file = join(directory, ".opencode/state/live/bench.json")
const readState = () => JSON.parse(readFileSync(file, "utf8")).state
const openStatefile = (current: () => LiveState | undefined) => {
  const own = { state: createStateFolder(directory), sessionID: "bench", pid: process.pid }
  return createStatefileWriter({ ...own, current, end: () => undefined, log })
}

/** Fits into a pipe, which is emptied before the next batch, outside of the measured time. */
const BATCH = 50
type Event = { type: string; properties: object }
const sessionID = "ses_bench"
const BUSY = { type: "session.status", properties: { sessionID, status: { type: "busy" } } }
const IDLE = { type: "session.status", properties: { sessionID, status: { type: "idle" } } }
const ENDED = { type: "session.idle", properties: { sessionID } }
const MESSAGE = {
  type: "message.updated",
  properties: { info: { id: "msg_1", sessionID, role: "assistant", time: {} } },
}

const measureCost = async (events: number, rounds: number) => {
  const publisher = createPublisher({ identity, strict: false, now: () => new Date() })
  publisher.receive({ kind: "session-created", sessionID, parentID: undefined })
  const argv = ["/bin/sh", "-c", "exec cat > /dev/null"] as const
  const writer = createStreamWriter({ argv, directory, snapshot: publisher.snapshot, log })
  writer.publish(publisher.snapshot())
  let published = 0
  const send = (event: Event): void => {
    for (const observed of readEvent(event)) {
      const line = publisher.receive(observed)
      if (!line) continue
      published++
      writer.publish(line)
    }
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
  const patch = (): StreamLine => ({ event: "state.patch", ts: ts(), patch: { turn } })
  const writer = openStatefile(() => ({ ...identity, turn }) as unknown as LiveState)
  writer.publish(patch())
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
      writer.publish(patch())
    }
    const [seen, now] = [newest(), performance.now()]
    while (ms.length < seen) ms.push(now - (sentAt[ms.length] ?? now))
    await wait(1)
  }
  await writer.stop(1_000)
  return { ms }
}

/** MB of the heap that are still in use: this loop makes garbage faster than it is collected. */
const kept = (): number => {
  Bun.gc(true)
  return process.memoryUsage().heapUsed / 1_000_000
}

const measureGrowth = async (total: number) => {
  const publisher = createPublisher({ identity, strict: false, now: () => new Date() })
  const writer = openStatefile(publisher.current)
  publisher.receive({ kind: "session-created", sessionID, parentID: undefined })
  let early = 0
  for (let sent = 1; sent <= total; sent++) {
    for (const observed of readEvent(sent % 2 === 0 ? ENDED : BUSY)) {
      const line = publisher.receive(observed)
      if (line) writer.publish(line)
    }
    // Lets the writer's timer run.
    if (sent % 500 === 0) await wait(0)
    if (sent === total / 10) early = kept()
  }
  const late = kept()
  await writer.stop(1_000)
  const turns = Number(readState().agent.turn_count)
  if (turns === total / 2) return { mb: [late - early] }
  throw new Error(`expected turn ${total / 2}, the statefile has ${turns}`)
}

const measures = { cost: measureCost, latencies: measureLatencies, growth: measureGrowth }
console.log(JSON.stringify(await measures[what as keyof typeof measures](Number(first), Number(second))))
process.exit(0)
