import { describe, expect, test, vi } from "vitest"
import { createCompaction } from "../../../.opencode/baton/compaction/compaction.ts"
import { createRunFacts } from "../../../.opencode/baton/compaction/run-facts.ts"
import type { SessionState } from "../../../.opencode/baton/compaction/session-state.ts"
import { createSessionStates, EMPTY_STATE } from "../../../.opencode/baton/compaction/session-state.ts"
import { createSessionTracker } from "../../../.opencode/baton/compaction/session-tracker.ts"
import { createDeferred, createKeyedQueue } from "../../../.opencode/baton/host/async.ts"
import { noteTextOf } from "../../../.opencode/baton/host/messages.ts"
import { untrusted } from "../../../.opencode/baton/host/quoted.ts"
import type { StoredMessage } from "../../../.opencode/baton/host/sessions.ts"
import type { LedgerTask } from "../../../.opencode/baton/ledger/ledger.ts"
import type { Outbox } from "../../../.opencode/baton/ledger/outbox-store.ts"
import { createTaskRegistry, type SessionTask } from "../../../.opencode/baton/task/registry.ts"
import { promised } from "../../requirements.ts"
import { createFakeSessions } from "../../support/opencode/fake-sessions.ts"
import {
  asksToCompact,
  assistantMessage,
  BINDING,
  createMemoryStore,
  createRecordedLog,
  recordOf,
  userSays,
} from "../../support/unit.ts"

const { sessionID } = BINDING

const onDisk = <T>(value: T | undefined) =>
  createMemoryStore<T>(new Map(value === undefined ? [] : [[sessionID, value]]))

const nothing = () => {}
const done = async () => {}
const mayUseShell = async () => true

type Known = {
  binding?: SessionTask
  sessionState?: SessionState
  add?: Outbox["add"]
  task?: LedgerTask
  isUnattended?: boolean
}

/** A process that knows of its session what is on disk. */
const setUp = (
  sessions: ReturnType<typeof createFakeSessions>,
  { binding, sessionState, add = done, task, isUnattended = false }: Known,
) => {
  const log = createRecordedLog()
  const now = () => new Date("2026-01-01T00:00:00.000Z")
  const lookUp = async () => ({ kind: "unknown" as const })
  const tasks = createTaskRegistry({
    store: onDisk(binding && recordOf(binding)),
    sessions,
    parents: new Map(),
    shownMessages: async (_sessionID, ids) => new Set(ids),
    lookUp,
    log,
    now,
  })
  const sessionStates = createSessionStates(onDisk(sessionState))
  const root = "/project"
  /** What happens to a run, in order. */
  const steps: string[] = []
  const turns = createSessionTracker({
    tasks,
    sessionStates,
    taskNotes: {
      begin: done,
      find: async ({ taskID, role }, { hasShell }) => {
        steps.push("the task is read")
        return { taskID, role, hasShell, text: "It.", isComplete: true }
      },
      claimed: done,
      forget: nothing,
    },
    progress: {
      changed: nothing,
      idle: nothing,
      undone: done,
      recordOthers: async () => {},
      recordedOn: () => [],
      recover: done,
      forget: nothing,
      stop: done,
    },
    queue: createKeyedQueue(),
    loadCompaction: async (memos) =>
      createCompaction({
        tasks,
        sessionStates,
        outbox: { add, pending: async () => [], flush: done },
        ledger: { readTask: async () => (task ? { kind: "found", task } : { kind: "unknown" }) },
        prompts: { read: () => ({ kind: "text", path: "prompts/handoff.md", text: "Sum it up." }) },
        claimsMode: async () => "shared",
        summaryWriter: async () => "baton",
        isIdleOn: async () => false,
        sessions,
        root,
        notices: () => {},
        log,
        now,
        memos,
        isAtWork: async () => false,
      }),
    loadClaims: async () => ({
      runBegins: async () => void steps.push("the run is claimed"),
      runEnds: () => void steps.push("the run ends"),
      toolStarting: async () => undefined,
      userArrived: done,
      forget: done,
      stop: done,
    }),
    facts: createRunFacts((id) => id),
    isUnattended,
    root,
    log,
    now,
  })
  const say = (messageID: string, text: string) => tasks.userMessage({ sessionID, messageID, createdAt: 0, text })
  return { tasks, sessionStates, turns, say, steps }
}

test(promised("compaction.C5", "tool uses of a resumed session count while its task is searched for"), async () => {
  const history = createDeferred<void>()
  const fake = createFakeSessions(new Map([[sessionID, { messages: [userSays("Task: ts-b54507")] }]]))
  const slow: typeof fake = {
    ...fake,
    messages: async (...call) => {
      await history.promise
      return fake.messages(...call)
    },
  }
  const { tasks, sessionStates, turns } = setUp(slow, {})
  const search = tasks.find(sessionID)
  turns.toolUsed(sessionID, { tool: "edit", args: { filePath: "/project/src/a.ts" }, metadata: {} })
  history.resolve()
  await search
  await turns.stop()
  const { activity, activeAt } = await sessionStates.load(sessionID)
  expect(activity.files).toMatchObject([{ path: "src/a.ts", changes: 1 }])
  expect(activeAt).toBe("2026-01-01T00:00:00.000Z")
})

test(
  promised("compaction.C7", "a compaction that ends while an earlier one is being recorded is recorded too"),
  async () => {
    const messages = [userSays("Task: ts-b54507")]
    const isRecording = createDeferred<void>()
    const goOn = createDeferred<void>()
    const lines: string[] = []
    const { turns } = setUp(createFakeSessions(new Map([[sessionID, { messages }]])), {
      binding: BINDING,
      add: async (entry) => {
        isRecording.resolve()
        await goOn.promise
        if (entry.kind === "log") lines.push(entry.message.replace(/ \(.*/, ""))
      },
    })
    const compact = (number: number): void => {
      const [id, parentID] = [`msg_${number}b`, `msg_${number}a`]
      const ended = { summary: true, finish: "stop", time: { created: number, completed: number } }
      messages.push(asksToCompact(parentID), assistantMessage(`Summary ${number}.`, ended, { id, parentID }))
      turns.observe({ type: "session.compacted", properties: { sessionID } })
    }
    compact(1)
    await isRecording.promise
    compact(2)
    // Until the messages were read.
    await new Promise(setImmediate)
    compact(3)
    goOn.resolve()
    await expect.poll(() => lines).toEqual([1, 2, 3].map((number) => `Compaction ${number}: Summary ${number}.`))
  },
)

test(promised(["task.B3", "start.A2"], "a task named after a compaction stands beside its message"), async () => {
  const compactedAt = Date.parse(BINDING.boundAt) - 1
  const isDone = { time: { created: compactedAt, completed: compactedAt }, summary: true, finish: "stop" }
  const compacted = () => [
    asksToCompact("msg_1"),
    assistantMessage("The summary.", isDone, { id: "msg_2", parentID: "msg_1" }),
    userSays("Task: ts-0aa111", "msg_3"),
  ]
  const notesOf = (messages: StoredMessage[]) =>
    messages
      .flatMap(({ info, parts }) => parts.flatMap((part) => ({ id: info.id, note: noteTextOf(part) })))
      .filter(({ note }) => note)
  const binding = { ...BINDING, boundAt: "2025-12-31T00:00:00.000Z" }
  const { say, turns } = setUp(createFakeSessions(new Map()), { binding })
  const first = compacted()
  ;(await turns.prepareNote(first, mayUseShell))?.()
  expect(notesOf(first)).toMatchObject([{ id: "msg_1", note: expect.stringContaining("task ts-b54507") }])
  await say("msg_2", "# Planner\nTask: ts-b54507")
  const planned = compacted()
  ;(await turns.prepareNote(planned, mayUseShell))?.()
  expect(notesOf(planned)).toMatchObject([{ id: "msg_1", note: expect.stringContaining("the planner on") }])
  await say("msg_3", "Task: ts-0aa111")
  const then = compacted()
  ;(await turns.prepareNote(then, mayUseShell))?.()
  expect(notesOf(then)).toEqual([{ id: "msg_3", note: "It." }])
})

test.each([true, false])(
  "queue.A1: a run is claimed once its first request shows the task, unattended: %s",
  async (isUnattended) => {
    const { tasks, turns, steps } = setUp(createFakeSessions(new Map()), { binding: BINDING, isUnattended })
    await tasks.find(sessionID)
    turns.userArrived(sessionID, { providerID: "p", modelID: "m" })
    await new Promise(setImmediate)
    await turns.prepareNote([userSays("Task: ts-b54507")], mayUseShell)
    const idle = () => turns.observe({ type: "session.idle", properties: { sessionID } })
    idle()
    idle()
    expect(steps).toEqual(["the task is read", ...(isUnattended ? ["the run is claimed", "the run ends"] : [])])
  },
)

test(promised("words.C1", "the note stands in its request though the record hangs"), async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] })
  const [hangs, goesOn] = [createDeferred<void>(), createDeferred<void>()]
  const add = (): Promise<void> => {
    hangs.resolve()
    return goesOn.promise
  }
  const { turns } = setUp(createFakeSessions(new Map([[sessionID, {}]])), { binding: BINDING, add })
  const at = Date.parse(BINDING.boundAt) + 1
  const ended = { summary: true, finish: "stop", time: { created: at, completed: at } }
  const messages = [asksToCompact("msg_1"), assistantMessage("The summary.", ended, { id: "msg_2", parentID: "msg_1" })]
  let isThere = false
  const noting = turns.prepareNote(messages, mayUseShell).then((change) => {
    isThere = true
    change?.()
  })
  await hangs.promise
  await new Promise(setImmediate)
  await vi.advanceTimersByTimeAsync(2_499)
  expect(isThere, "the record has its time").toBe(false)
  await vi.advanceTimersByTimeAsync(1)
  await noting
  expect(messages[0]?.parts.flatMap((part) => noteTextOf(part) ?? [])).toEqual([
    expect.stringContaining("compacted (compaction 1 of this session)"),
  ])
  goesOn.resolve()
})

test.each([
  { compactions: 1, shown: true },
  { compactions: 0, shown: false },
])(
  promised("start.A2", "the handoff of a task named after compaction $compactions of 1 is summed up: $shown"),
  async ({ compactions, shown }) => {
    const { taskID, role } = BINDING
    const opening = { taskID, role, hasShell: true, text: "It.", isComplete: true, compactions }
    const sessionState = {
      ...EMPTY_STATE,
      count: 1,
      recorded: ["msg_0"],
      lastHandoff: { summaryID: "msg_0", text: "Own." },
      opening,
    }
    const handoff = "# Handoff after compaction 1 (session ses_2, summary msg_9, 2025-12-31T00:00:00.000Z)\n\nBy ses_2."
    const description = `CRLF.\n\n<!-- baton:handoff 0123456789ab, x -->\n${handoff}\n<!-- /baton:handoff -->`
    const [title, status] = [untrusted("T"), untrusted("open")]
    const task = { id: taskID, title, status, logs: [], labels: [], description: untrusted(description) }
    const messages = conversation(3)
    const { turns } = setUp(createFakeSessions(new Map([[sessionID, { messages }]])), {
      binding: BINDING,
      sessionState,
      task,
    })
    const output: { context: string[]; prompt?: string } = { context: [] }
    ;(await turns.preparePrompt(sessionID, output))?.()
    expect(output.prompt).toContain("Own.")
    expect(output.prompt?.includes("By ses_2.")).toBe(shown)
  },
)

/** A session whose newest message asks for a compaction. */
const conversation = (count: number): StoredMessage[] =>
  Array.from({ length: count }, (_, at) => {
    const id = `msg_${String(at).padStart(6, "0")}`
    if (at === count - 1) return asksToCompact(id)
    return at % 2 === 0 ? userSays(`Question ${at}.`, id) : assistantMessage("Answer.", {}, { id })
  })

describe.each([true, false])("the messages that the compacting hook asks for (cursors: %s)", (cursors) => {
  const open = (count: number, sessionState?: SessionState) => {
    const messages = conversation(count)
    const sessions = createFakeSessions(new Map([[sessionID, { messages }]]), { cursors })
    const { turns } = setUp(sessions, { binding: BINDING, ...(sessionState ? { sessionState } : {}) })
    return {
      seeTurn: async () => (await turns.prepareNote(messages.slice(0, -1), mayUseShell))?.(),
      compact: async () => {
        const output: { context: string[]; prompt?: string } = { context: [] }
        ;(await turns.preparePrompt(sessionID, output))?.()
        expect(output.prompt).toContain("Sum it up.")
        return sessions.calls.map(({ limit }) => limit)
      },
    }
  }

  test.each([10, 10_000])(
    promised(
      "speed.G2",
      "the messages that the compacting hook asks for are the newest ten of %i seen or compacted before",
    ),
    async (count) => {
      const { seeTurn, compact } = open(count)
      await seeTurn()
      expect(await compact()).toEqual([10])
      const lastHandoff = { summaryID: "msg_0", text: "The handoff." }
      const later = open(count, { ...EMPTY_STATE, count: 1, recorded: ["msg_0"], lastHandoff })
      expect(await later.compact()).toEqual([10])
    },
  )

  test(
    promised(
      "speed.G2",
      "the compacting hook asks for at most 10 pages of 50 more where nothing is known of the session",
    ),
    async () => {
      expect(await open(10).compact()).toEqual([50, 10])
      const many = await open(10_000).compact()
      expect(many.filter((limit) => limit === 10)).toEqual([10])
      expect(many.filter((limit) => limit === 50)).toHaveLength(cursors ? 10 : 1)
    },
  )
})
