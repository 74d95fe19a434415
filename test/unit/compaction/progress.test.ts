import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { hostname } from "node:os"
import { join } from "node:path"
import { beforeEach, describe, expect, onTestFinished, test, vi } from "vitest"
import { createIsAtWork, createProgress, RECORD_EVERY_MS } from "../../../.opencode/baton/compaction/progress.ts"
import { EMPTY_STATE, type SessionState, withRecorded } from "../../../.opencode/baton/compaction/session-state.ts"
import { createKeyedQueue } from "../../../.opencode/baton/host/async.ts"
import { startOfProcess } from "../../../.opencode/baton/host/process-identity.ts"
import type { StoredMessage } from "../../../.opencode/baton/host/sessions.ts"
import { createStateFolder } from "../../../.opencode/baton/host/state.ts"
import type { OutboxEntry, ParkedEntry } from "../../../.opencode/baton/ledger/outbox-store.ts"
import { afterToolUse } from "../../../.opencode/baton/task/activity.ts"
import type { SessionTask } from "../../../.opencode/baton/task/registry.ts"
import { NO_WORDS } from "../../../.opencode/baton/task/user-words.ts"
import { promised } from "../../requirements.ts"
import {
  assistantMessage,
  BINDING,
  createFakeSessions,
  createRecordedLog,
  temporaryFolder,
} from "../../support/unit.ts"

const { sessionID, taskID, role } = BINDING
const OTHER_BINDING = { ...BINDING, taskID: "ts-0aa111" }
/** No process has this id. */
const DEAD = 2 ** 30
const LATER = "2026-01-01T00:05:00.000Z"
const HERE = { taskID, isIdle: false, host: hostname(), pid: process.pid, activeAt: undefined }

beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance", "Date"] }))

const setUp = (stored: SessionState = EMPTY_STATE, messages: StoredMessage[] = []) => {
  const root = temporaryFolder()
  let sessionState = stored
  let binding = BINDING
  const listeners: ((binding: SessionTask) => void)[] = []
  const added: OutboxEntry[] = []
  const outbox: { waiting: OutboxEntry[]; parked: ParkedEntry[] } = { waiting: [], parked: [] }
  const log = createRecordedLog()
  const fakes = new Map([[sessionID, { messages }]])
  const state = createStateFolder(root)
  const progress = createProgress({
    state,
    sessionStates: {
      load: async () => sessionState,
      update: async (_sessionID, update) => {
        sessionState = update(sessionState)
        return sessionState
      },
      save: async () => true,
    },
    tasks: {
      onTask: (listener) => void listeners.push(listener),
      cached: () => binding,
      readStored: async () => binding,
    },
    outbox: {
      add: async (entry) => void added.push(entry),
      pending: async () => outbox.waiting,
      status: async () => ({ waiting: 0, parked: outbox.parked }),
    },
    queue: createKeyedQueue(),
    sessions: createFakeSessions(fakes),
    root,
    log,
    now: () => new Date(),
  })
  // A record reads git's files.
  onTestFinished(() => progress.stop())
  const file = join(root, ".opencode/state/working", `${sessionID}.json`)
  return {
    progress,
    isAtWork: createIsAtWork({ state, log }),
    sessionState: () => sessionState,
    change: (path: string): void => {
      const use = { tool: "write", args: { filePath: path }, metadata: {} }
      sessionState = { ...sessionState, activity: afterToolUse(sessionState.activity, use, root) }
      progress.changed(binding)
    },
    takeTask: (other: SessionTask): void => {
      binding = other
      for (const listener of listeners) listener(other)
    },
    /** Waits for so many records, and a little for one too many: a record reads git's files. */
    sections: async (count: number) => {
      const all = () => added.flatMap((entry) => (entry.kind === "handoff" ? [entry.section] : []))
      for (let turn = 0; all().length < count || turn < 100; turn++) await new Promise((next) => setImmediate(next))
      return all()
    },
    added,
    outbox,
    /** Takes these messages away, as an undo that a message has followed. */
    show: (shown: StoredMessage[]) => void fakes.set(sessionID, { messages: shown }),
    file,
    mark: () => (existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : undefined),
  }
}

describe("work in progress", () => {
  test(promised("sessions.A1", "work is recorded when the turn ends, and at most once a minute"), async () => {
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

  test(
    promised(["sessions.A1", "task.B3"], "work is recorded at once where the last record was another task's"),
    async () => {
      const { progress, change, takeTask, sections, added } = setUp()
      takeTask(OTHER_BINDING)
      change("a.ts")
      progress.idle(sessionID)
      await sections(1)
      takeTask(BINDING)
      change("b.ts")
      progress.idle(sessionID)
      await sections(2)
      expect(added.map((entry) => "taskID" in entry && entry.taskID)).toEqual([OTHER_BINDING.taskID, BINDING.taskID])
    },
  )

  test(promised("sessions.A1", "work of a long turn is recorded each minute in which something changed"), async () => {
    const { change, sections, mark } = setUp()
    for (const path of ["a.ts", "b.ts"]) {
      change(path)
      await vi.advanceTimersByTimeAsync(RECORD_EVERY_MS)
    }
    await vi.advanceTimersByTimeAsync(5 * RECORD_EVERY_MS)
    expect(await sections(2)).toHaveLength(2)
    expect(mark()).toMatchObject({ isIdle: false })
  })

  test(
    promised("sessions.A1", "work in progress is recorded at the process's end; of a subagent it is its parent's"),
    async () => {
      const { progress, change, sections, mark } = setUp()
      progress.changed({ ...BINDING, sessionID: "ses_child", origin: "parent" })
      change("a.ts")
      await progress.stop()
      expect(await sections(1)).toHaveLength(1)
      expect(mark()).toBeUndefined()
    },
  )

  test.each([
    { name: "not recorded while an earlier one waits", how: "waits", of: taskID, records: 0 },
    { name: "not recorded while an earlier one is parked", how: "parked", of: taskID, records: 0 },
    { name: "recorded while one of another task is parked", how: "parked", of: OTHER_BINDING.taskID, records: 1 },
  ])(promised("sessions.A1", "work in progress is $name"), async ({ how, of, records }) => {
    const { progress, change, sections, outbox } = setUp()
    const earlier = { kind: "handoff", taskID: of, sessionID, section: "earlier" } as const
    const record = { version: 1, createdAt: "", entry: earlier } as const
    if (how === "waits") outbox.waiting.push(earlier)
    else outbox.parked.push({ file: "/parked.json", record, reason: "no such task", since: "" })
    change("a.ts")
    progress.idle(sessionID)
    expect(await sections(records)).toHaveLength(records)
  })

  test.each([
    { name: "a minute later, when that is through", isThrough: true },
    { name: "at the process's end, whether that is through or not", isThrough: false },
  ])(promised("sessions.A1", "work that an earlier record kept from the ledger is recorded $name"), async (row) => {
    const { progress, change, sections, outbox, mark } = setUp()
    outbox.waiting.push({ kind: "handoff", taskID, sessionID, section: "earlier" })
    change("a.ts")
    progress.idle(sessionID)
    expect(await sections(0)).toEqual([])
    expect(mark()).toMatchObject({ isIdle: true })
    if (row.isThrough) {
      outbox.waiting.pop()
      await vi.advanceTimersByTimeAsync(RECORD_EVERY_MS)
    } else await progress.stop()
    expect(await sections(1)).toEqual([expect.stringContaining("a.ts ×1")])
    expect(mark()).toBeUndefined()
  })

  test(promised("sessions.A1", "work that the waiting record tells already is not recorded again"), async () => {
    const { progress, change, sections, outbox, mark } = setUp()
    change("a.ts")
    progress.idle(sessionID)
    const [section = ""] = await sections(1)
    outbox.waiting.push({ kind: "handoff", taskID, sessionID, section })
    await vi.advanceTimersByTimeAsync(RECORD_EVERY_MS)
    progress.changed(BINDING)
    await progress.stop()
    expect(await sections(1)).toHaveLength(1)
    expect(mark()).toBeUndefined()
  })

  test(promised(["sessions.A1", "task.B3"], "work is recorded in the task that it was done for"), async () => {
    const { change, takeTask, sections, added } = setUp()
    change("a.ts")
    takeTask(BINDING)
    expect(await sections(0)).toEqual([])
    takeTask(OTHER_BINDING)
    await sections(1)
    change("b.ts")
    await vi.advanceTimersByTimeAsync(RECORD_EVERY_MS)
    const [first, second] = await sections(2)
    expect(added.map((entry) => "taskID" in entry && entry.taskID)).toEqual([taskID, OTHER_BINDING.taskID])
    expect(first).not.toContain("b.ts")
    expect(second).toContain("b.ts ×1")
  })

  const answer = (text: string) => assistantMessage(text, { time: { created: 2, completed: 3 } })
  const words = "## The user's own words, newest first"

  test(
    promised(["sessions.A1", "words.A6"], "work is left by a message of the user's alone, with the answer's end"),
    async () => {
      const long = `${"x".repeat(900)}The lexer is proven; CRLF is open.`
      const { progress, sections } = setUp(EMPTY_STATE, [answer("An older one."), answer(long)])
      progress.changed(BINDING)
      progress.idle(sessionID)
      const [section = ""] = await sections(1)
      const end = `…${long.slice(-800)}`
      expect(section).toContain(`\n\n## The end of the agent's last answer\n\`\`\`text\n${end}\n\`\`\`\n\n## Facts`)
      expect(section).toContain(`\n\n${words}\nLater words outrank`)
      expect(section).toMatch(/```text\nMind the lexer\.\n```$/)
      expect(section).not.toContain("An older one.")
    },
  )

  test(promised("words.A6", "work in progress holds no secret of the last answer, and no summary as one"), async () => {
    const key = `AKIA${"A2B3C4D5E6F7G2H3"}`
    const summary = assistantMessage("A summary.", { summary: true, time: { created: 2, completed: 3 } })
    const { progress, sections } = setUp(EMPTY_STATE, [answer(`It is ${key}.`), summary])
    progress.changed(BINDING)
    progress.idle(sessionID)
    expect(await sections(1)).toEqual([expect.stringContaining("```text\nIt is [redacted].\n```")])
  })

  test(
    promised("words.A3", "an undo replaces the section of work in progress, without its words and the answer"),
    async () => {
      const { progress, sections, takeTask, outbox } = setUp(EMPTY_STATE, [answer("Done as asked.")])
      progress.changed(BINDING)
      progress.idle(sessionID)
      const [waits = ""] = await sections(1)
      outbox.waiting.push({ kind: "handoff", taskID, sessionID, section: waits })
      takeTask({ ...BINDING, said: NO_WORDS })
      await progress.undone(BINDING)
      const [before, after = ""] = await sections(2)
      expect(before).toContain("Done as asked.")
      expect(after).toMatch(/^# Work in progress/)
      expect(after).not.toMatch(/Done as asked\.|Mind the lexer\.|own words/)
    },
  )

  test(promised("words.B4", "a session is at work in the middle of a turn, and not after it"), async () => {
    const { progress, isAtWork } = setUp()
    expect(await isAtWork(sessionID)).toBe(false)
    progress.changed(BINDING)
    await expect.poll(() => isAtWork(sessionID)).toBe(true)
    progress.idle(sessionID)
    await expect.poll(() => isAtWork(sessionID)).toBe(false)
  })

  const compaction = { summaryID: "msg_1", summary: "The lexer is proven.", saysLess: false }
  const note = { requestID: "msg_0", taskID, role, hasShell: true, text: "Go on." }
  const compacted = withRecorded(EMPTY_STATE, compaction, note)
  const emptied = withRecorded(
    compacted,
    { summaryID: "msg_2", summary: "", saysLess: true },
    { ...note, taskID: OTHER_BINDING.taskID },
  )
  const older = {
    ...compacted,
    lastHandoff: { summaryID: "msg_1", text: compaction.summary },
  }
  test.each([
    { on: "its task", task: BINDING, stored: compacted, title: "Handoff after compaction 1", isTold: true },
    { on: "an earlier task", task: OTHER_BINDING, stored: compacted, title: "Work in progress", isTold: false },
    {
      on: "both, the last one empty",
      task: OTHER_BINDING,
      stored: emptied,
      title: "Work in progress",
      isTold: false,
    },
    { on: "an unknown task", task: OTHER_BINDING, stored: older, title: "Handoff after compaction 1", isTold: true },
  ])(
    promised(["sessions.A1", "task.B3"], "work after a compaction on $on is recorded"),
    async ({ task, stored, title, isTold }) => {
      const { progress, change, takeTask, sections } = setUp(stored)
      takeTask(task)
      change("a.ts")
      progress.idle(sessionID)
      const [section = ""] = await sections(1)
      expect(section).toMatch(new RegExp(`^# ${title} \\(session ${sessionID}`))
      expect(section.includes(compaction.summary)).toBe(isTold)
    },
  )

  test(
    promised(
      "words.A3",
      "an undo of a compaction takes its summary out of the handoff, for good with the next message",
    ),
    async () => {
      const summary = { ...answer(compaction.summary), parts: [] }
      const stored = { ...summary, info: { ...summary.info, id: compaction.summaryID } }
      const { progress, sections, sessionState, show } = setUp(compacted, [stored])
      await progress.undone(BINDING, { isFinal: true })
      expect((await sections(1))[0]).toContain(compaction.summary)
      show([])
      await progress.undone(BINDING)
      const title = new RegExp(
        `^# Handoff after compaction 1 \\(session ${sessionID}, summary ${compaction.summaryID},`,
      )
      const [, undone = ""] = await sections(2)
      expect(undone).toMatch(title)
      expect(undone).toContain("The user undid the compaction")
      expect(undone).not.toContain(compaction.summary)
      expect(sessionState().lastHandoff, "a redo may bring it back").toBeDefined()
      await progress.undone(BINDING, { isFinal: true })
      expect(sessionState().lastHandoff).toBeUndefined()
    },
  )

  test.each([
    { name: "in the middle of a turn", ...HERE, pid: DEAD, crashed: 1, records: 1 },
    { name: "long after the turn's first tool", ...HERE, pid: DEAD, activeAt: LATER, crashed: 1, records: 1 },
    { name: "right after a turn", ...HERE, isIdle: true, pid: DEAD, crashed: 0, records: 1 },
    { name: "and whose id is in use again", ...HERE, startedAt: "another", crashed: 1, records: 1 },
    { name: "on another machine, perhaps", ...HERE, host: "other", pid: DEAD, crashed: 0, records: 0 },
    { name: "not at all", ...HERE, startedAt: startOfProcess(process.pid), crashed: 0, records: 0 },
    { name: "not at all, though its start is unknown", ...HERE, crashed: 0, records: 0 },
  ])(
    promised("sessions.A1", "the work of a process that ended $name is recorded or left"),
    async ({ crashed, records, activeAt, ...ended }) => {
      const { progress, change, sections, added, file, mark } = setUp({ ...EMPTY_STATE, activeAt })
      change("a.ts")
      mkdirSync(join(file, ".."), { recursive: true })
      const since = "2026-01-01T00:00:00.000Z"
      writeFileSync(file, JSON.stringify({ version: 1, sessionID, since, startedAt: "", ...ended }))
      await progress.recover()
      const end = `- The session ended in the middle of the turn of ${since}`
      const section = new RegExp(`^#.*, ${activeAt ?? since}\\)\n[^]* a\\.ts ×1\n${end}\n\n## The user's own words`)
      expect(await sections(records)).toEqual(
        Array(records).fill(crashed ? expect.stringMatching(section) : expect.anything()),
      )
      const logs = added.flatMap((entry) => (entry.kind === "log" ? [entry.message] : []))
      expect(logs).toEqual(Array(crashed).fill(`Session ${sessionID} ended in the middle of the turn of ${since}`))
      expect(mark() === undefined).toBe(records > 0)
    },
  )

  test(
    promised(["sessions.A1", "task.B3"], "the work of a process that ended goes to the task it was done for"),
    async () => {
      const ended = setUp()
      ended.change("a.ts")
      const next = setUp(ended.sessionState())
      next.takeTask(OTHER_BINDING)
      mkdirSync(join(next.file, ".."), { recursive: true })
      writeFileSync(next.file, JSON.stringify({ ...ended.mark(), pid: DEAD }))
      await next.progress.recover()
      expect(next.added).toMatchObject([
        { kind: "handoff", taskID, section: expect.stringContaining("a.ts ×1") },
        { kind: "log", taskID },
      ])
      ended.takeTask(OTHER_BINDING)
      ended.change("b.ts")
      expect(ended.mark()).toMatchObject({ taskID: OTHER_BINDING.taskID })
    },
  )
})
