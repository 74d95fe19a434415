import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { hostname } from "node:os"
import { join } from "node:path"
import { beforeEach, describe, expect, test, vi } from "vitest"
import { createProgress, RECORD_EVERY_MS } from "../../../.opencode/baton/compaction/progress.ts"
import { EMPTY_STATE, type SessionState } from "../../../.opencode/baton/compaction/session-state.ts"
import { createKeyedQueue } from "../../../.opencode/baton/host/async.ts"
import { createStateFolder } from "../../../.opencode/baton/host/state.ts"
import type { OutboxEntry, ParkedEntry } from "../../../.opencode/baton/ledger/outbox-store.ts"
import { afterToolUse } from "../../../.opencode/baton/task/activity.ts"
import { promised } from "../../requirements.ts"
import { temporaryFolder } from "../../support/files/with-test.ts"
import { createRecordedLog } from "../../support/recorded-log.ts"
import { BINDING } from "../../support/task-binding.ts"

const { sessionID, taskID } = BINDING
/** No process has this id. */
const DEAD = 2 ** 30

beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance", "Date"] }))

const setUp = () => {
  const root = temporaryFolder()
  let sessionState: SessionState = EMPTY_STATE
  const added: OutboxEntry[] = []
  const outbox: { waiting: OutboxEntry[]; parked: ParkedEntry[] } = { waiting: [], parked: [] }
  const progress = createProgress({
    state: createStateFolder(root),
    sessionStates: { load: async () => sessionState },
    bindings: { read: async () => BINDING },
    outbox: {
      add: async (entry) => void added.push(entry),
      addIfMissing: async (entry) => void added.push(entry),
      pending: async () => outbox.waiting,
      status: async () => ({ waiting: 0, parked: outbox.parked }),
    },
    queue: createKeyedQueue(),
    sessions: { todos: async () => ({ kind: "ok", value: [] }) },
    root,
    log: createRecordedLog(),
    now: () => new Date(),
  })
  const file = join(root, ".opencode/state/working", `${sessionID}.json`)
  return {
    progress,
    change: (path: string): void => {
      const use = { tool: "write", args: { filePath: path }, metadata: {} }
      sessionState = { ...sessionState, activity: afterToolUse(sessionState.activity, use, root) }
      progress.changed(BINDING)
    },
    /** Waits for so many records, and a little for one too many: a record reads git's files. */
    sections: async (count: number) => {
      const all = () => added.flatMap((entry) => (entry.kind === "handoff" ? [entry.section] : []))
      for (let turn = 0; all().length < count || turn < 100; turn++) await new Promise((next) => setImmediate(next))
      return all()
    },
    added,
    outbox,
    file,
    mark: () => (existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : undefined),
  }
}

describe("work in progress", () => {
  test(promised("sessions.A1", "is recorded when the turn ends, and at most once a minute"), async () => {
    const { progress, change, sections, mark } = setUp()
    change("a.ts")
    expect(mark()).toMatchObject({ sessionID, pid: process.pid, isIdle: false })
    expect(await sections(0)).toEqual([])
    progress.idle(sessionID)
    expect(await sections(1)).toEqual([expect.stringContaining("a.ts ×1")])
    expect(mark()).toBeUndefined()
    change("b.ts")
    progress.idle(sessionID)
    expect(await sections(1)).toHaveLength(1)
    expect(mark()).toMatchObject({ isIdle: true })
    await vi.advanceTimersByTimeAsync(RECORD_EVERY_MS)
    expect(await sections(2)).toEqual([expect.anything(), expect.stringContaining("b.ts ×1, a.ts ×1")])
    expect(mark()).toBeUndefined()
  })

  test(promised("sessions.A1", "of a long turn is recorded each minute in which something changed"), async () => {
    const { change, sections, mark } = setUp()
    for (const path of ["a.ts", "b.ts"]) {
      change(path)
      await vi.advanceTimersByTimeAsync(RECORD_EVERY_MS)
    }
    await vi.advanceTimersByTimeAsync(5 * RECORD_EVERY_MS)
    expect(await sections(2)).toHaveLength(2)
    expect(mark()).toMatchObject({ isIdle: false })
  })

  test(promised("sessions.A1", "is recorded at the process's end; of a subagent it is its parent's"), async () => {
    const { progress, change, sections, mark } = setUp()
    progress.changed({ ...BINDING, sessionID: "ses_child", origin: "parent" })
    change("a.ts")
    await progress.stop()
    expect(await sections(1)).toHaveLength(1)
    expect(mark()).toBeUndefined()
  })

  test.each(["waits", "is parked"])(promised("sessions.A1", "is not recorded while an earlier one %s"), async (how) => {
    const { progress, change, sections, outbox } = setUp()
    const earlier = { kind: "handoff", taskID, sessionID, section: "earlier" } as const
    const record = { version: 1, createdAt: "", entry: earlier } as const
    if (how === "waits") outbox.waiting.push(earlier)
    else outbox.parked.push({ file: "/parked.json", record, reason: "no such task", since: "" })
    change("a.ts")
    progress.idle(sessionID)
    expect(await sections(0)).toEqual([])
  })

  test.each([
    { name: "in the middle of a turn", isIdle: false, host: hostname(), pid: DEAD, crashed: 1, records: 1 },
    { name: "right after a turn", isIdle: true, host: hostname(), pid: DEAD, crashed: 0, records: 1 },
    { name: "on another machine, perhaps", isIdle: false, host: "other", pid: DEAD, crashed: 0, records: 0 },
    { name: "not at all", isIdle: false, host: hostname(), pid: process.pid, crashed: 0, records: 0 },
  ])(promised("sessions.A1", "of a process that ended $name"), async ({ isIdle, host, pid, crashed, records }) => {
    const { progress, change, sections, added, file, mark } = setUp()
    change("a.ts")
    mkdirSync(join(file, ".."), { recursive: true })
    const since = "2026-01-01T00:00:00.000Z"
    writeFileSync(file, JSON.stringify({ version: 1, sessionID, host, pid, since, isIdle }))
    await progress.recover()
    expect(await sections(records)).toHaveLength(records)
    const logs = added.flatMap((entry) => (entry.kind === "log" ? [entry.message] : []))
    expect(logs).toEqual(Array(crashed).fill(`Session ${sessionID} ended without a word in the turn of ${since}`))
    expect(mark() === undefined).toBe(records > 0)
  })
})
