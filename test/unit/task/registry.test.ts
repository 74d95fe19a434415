import { expect, test, vi } from "vitest"
import { createDeferred } from "../../../.opencode/baton/host/async.ts"
import type { Result, Sessions, StoredMessage } from "../../../.opencode/baton/host/sessions.ts"
import { createShownMessages } from "../../../.opencode/baton/host/shown-messages.ts"
import { createTaskRegistry, type TaskRegistry } from "../../../.opencode/baton/task/registry.ts"
import { type SessionTask, type TaskRecord, taskOf } from "../../../.opencode/baton/task/session-task.ts"
import { promised } from "../../requirements.ts"
import { createMemoryStore, createSlowStore } from "../../support/memory-store.ts"
import { createFakeSessions, type FakeSession } from "../../support/opencode/fake-sessions.ts"
import { assistantMessage, createRecordedLog, userSays, userWords } from "../../support/unit.ts"

const NOW = new Date("2026-01-01T00:00:00.000Z")

const answers = (length: number) => Array.from({ length }, () => assistantMessage("x"))
/** A session whose task is named so many messages back. */
const namedLongAgo = (length: number) => ({ ses_1: [userSays("Task: ts-b54507"), ...answers(length)] })

const BUSY: Result<never> = { kind: "failed", reason: "busy" }

type Options = {
  history?: Record<string, StoredMessage[]>
  parents?: Record<string, string>
  now?: () => Date
  /** Other answers of OpenCode's. */
  change?: (sessions: Sessions) => Partial<Sessions>
  store?: ReturnType<typeof createMemoryStore<TaskRecord>>
  /** The ledger's answer for an id; by default it knows all. */
  lookUp?: Parameters<typeof createTaskRegistry>[0]["lookUp"]
}

const setUp = (options: Options = {}) => {
  const { history = {}, parents = {}, now = () => NOW } = options
  const store = options.store ?? createMemoryStore<TaskRecord>()
  const stored = new Map<string, FakeSession>()
  for (const [id, messages] of Object.entries(history)) stored.set(id, { messages })
  for (const [id, parentID] of Object.entries(parents)) stored.set(id, { ...stored.get(id), info: { parentID } })
  const sessions = createFakeSessions(stored)
  const answers = { ...sessions, ...options.change?.(sessions) }
  const log = createRecordedLog()
  const lookUp = vi.fn(options.lookUp ?? (async () => ({ kind: "found" as const })))
  const created = new Map<string, string | null>()
  const deps = { sessions: answers, parents: created, lookUp, log, now, searchDeadlineMs: 1_000 }
  const shownMessages = createShownMessages(answers)
  const create = () => createTaskRegistry({ ...deps, store, shownMessages })
  return {
    created,
    store,
    calls: sessions.calls,
    entries: log.lines,
    lookUp,
    create,
    tasks: create(),
    stored: (sessionID: string) => taskOf(store.values.get(sessionID)),
  }
}

let messages = 0
/** A message of a user, or of an agent to its subagent, which is newer than all before it. */
const say = (tasks: TaskRegistry, sessionID: string, text: string): Promise<readonly string[]> =>
  tasks.userMessage({ sessionID, messageID: `msg_${++messages}`, createdAt: NOW.getTime() + messages * 1_000, text })

const saidIn = (task: SessionTask | undefined) => task?.said.words.map(({ text }) => text)

test(promised("task.B2", "a Task line binds the session at once, without reading a message"), async () => {
  const { tasks, stored, calls } = setUp()
  await say(tasks, "ses_1", "# Planner\nTask: ts-b54507\nMind the lexer.")
  expect(tasks.cached("ses_1")).toMatchObject({ taskID: "ts-b54507", role: "planner", origin: "message" })
  expect(stored("ses_1")?.boundAt).toBe(NOW.toISOString())
  expect(calls).toEqual([])
})

test(promised(["task.B2", "words.A1"], "the words on a task are kept over a restart"), async () => {
  const { tasks, create } = setUp()
  await say(tasks, "ses_1", "Task: ts-b54507\nThe whole brief.")
  const later = create()
  await say(later, "ses_1", "Task: ts-b54507\ngo on")
  expect(saidIn(later.cached("ses_1"))).toEqual(["Task: ts-b54507\nThe whole brief.", "Task: ts-b54507\ngo on"])
})

test(promised(["task.B2", "words.A1"], "a task is never found without the words that are known with it"), async () => {
  const text = "Task: ts-b54507\nNever touch the lexer."
  for (const begin of [
    (tasks: TaskRegistry) => tasks.find("ses_1"),
    (tasks: TaskRegistry) => say(tasks, "ses_1", text),
  ]) {
    const { tasks } = setUp({ history: { ses_1: [userSays(text)] } })
    const seen: unknown[] = []
    tasks.onTask((task) => seen.push(saidIn(task)))
    await begin(tasks)
    expect(seen).toEqual([[text]])
  }
})

test(promised("task.B2", "a task in the newest page costs one page of 10 or 10,000"), async () => {
  for (const length of [9, 9_999]) {
    const { tasks, calls } = setUp({ history: { ses_1: [...answers(length), userSays("Task: ts-b54507")] } })
    expect(await tasks.find("ses_1")).toMatchObject({ taskID: "ts-b54507", origin: "history" })
    expect(calls).toEqual([{ limit: 50 }])
  }
})

test(promised("task.B2", "the search ends at its deadline, and a later one may find the task"), async () => {
  let isSlow = true
  let clock = 0
  const now = () => {
    clock += isSlow ? 100 : 0
    return new Date(clock)
  }
  const { tasks, calls } = setUp({ history: namedLongAgo(9_999), now })
  expect(await tasks.find("ses_1")).toBeUndefined()
  expect(calls.reduce((sum, { limit }) => sum + limit, 0)).toBeLessThan(1_000)
  isSlow = false
  expect(await tasks.find("ses_1")).toMatchObject({ taskID: "ts-b54507" })
})

test.each([
  ["history", ({ messages }: Sessions) => ({ messages: vi.fn(messages).mockResolvedValueOnce(BUSY) })],
  ["parent", ({ parent }: Sessions) => ({ parent: vi.fn(parent).mockResolvedValueOnce(BUSY) })],
])(promised(["task.B2", "task.B3"], "a %s that cannot be read now is asked for again"), async (_what, change) => {
  const { tasks } = setUp({ history: namedLongAgo(0), parents: { ses_child: "ses_1" }, change })
  expect(await tasks.find("ses_child")).toBeUndefined()
  expect(await tasks.find("ses_child")).toMatchObject({ taskID: "ts-b54507", origin: "parent" })
})

test(promised("task.B3", "a task named while the history is searched counts, in memory and on disk"), async () => {
  const asked = createDeferred<void>()
  const change = ({ messages }: Sessions) =>
    ({ messages: (...args) => asked.promise.then(() => messages(...args)) }) satisfies Partial<Sessions>
  const { tasks, stored } = setUp({ history: { ses_1: [userSays("Task: ts-0000a1")] }, change })
  await say(tasks, "ses_1", "go on")
  await say(tasks, "ses_1", "Task: ts-b54507")
  asked.resolve()
  expect(await tasks.find("ses_1")).toMatchObject({ taskID: "ts-b54507" })
  await new Promise((resolve) => setImmediate(resolve))
  expect(tasks.cached("ses_1")?.taskID).toBe("ts-b54507")
  expect(stored("ses_1")?.taskID).toBe("ts-b54507")
})

test(promised("task.B3", "of two bindings at once the later one ends up on disk"), async () => {
  const store = createSlowStore<TaskRecord>()
  const { tasks, stored } = setUp({ store })
  const both = Promise.all(["ts-0000a1", "ts-b54507"].map((id) => say(tasks, "ses_1", `Task: ${id}`)))
  await store.endWrites()
  await both
  expect(stored("ses_1")?.taskID).toBe("ts-b54507")
})

test(promised("task.B1", "synthetic and assistant text never bind a session"), async () => {
  const synthetic = userSays("Task: ts-000001", "msg_1", { synthetic: true })
  const { tasks } = setUp({ history: { ses_1: [synthetic, assistantMessage("Task: ts-000002")] } })
  expect(await tasks.find("ses_1")).toBeUndefined()
})

test(promised(["task.B2", "task.B3"], "a child made here has its parent's task, unasked, and own order"), async () => {
  const parent = vi.fn(async () => BUSY)
  const { tasks, created } = setUp({ change: () => ({ parent }) })
  created.set("ses_parent", null)
  await say(tasks, "ses_parent", "# Planner\nTask: ts-b54507\nThe parent's brief")
  created.set("ses_child", "ses_parent")
  await say(tasks, "ses_child", "Count the files\nTask: ts-0aa111")
  const order = "Count the files\nTask: ts-0aa111"
  const said = { words: [], leftOut: 0 }
  const expected = { taskID: "ts-b54507", role: "planner", order, said, origin: "parent" }
  expect(await tasks.find("ses_child")).toMatchObject(expected)
  expect(parent).not.toHaveBeenCalled()
})

test(promised("task.B3", "the search for an ancestor's task ends in a circle of parents"), async () => {
  const { tasks } = setUp({ parents: { ses_x: "ses_y", ses_y: "ses_x", ses_z: "ses_z" } })
  expect([await tasks.find("ses_x"), await tasks.find("ses_z")]).toEqual([undefined, undefined])
})

test.each(["in one process", "after restarts"])(
  promised("task.B3", "a child goes on with its parent's task, %s"),
  async (when) => {
    const parents = { ses_parent: "ses_root", ses_child: "ses_parent" }
    const history = { ses_root: [userSays("Hello")], ses_child: [userSays("Count the files")] }
    const asked: string[] = []
    const change = ({ parent }: Sessions): Partial<Sessions> => ({
      parent: (id) => {
        asked.push(id)
        return parent(id)
      },
    })
    const { tasks, create, created, stored } = setUp({ parents, history, change })
    let now = tasks
    const taskOf = async (sessionID: string) => {
      if (when === "after restarts") now = create()
      return (await now.find(sessionID))?.taskID
    }
    await say(now, "ses_child", "Count the files")
    expect(await taskOf("ses_child")).toBeUndefined()
    for (const taskID of ["ts-b54507", "ts-0aa111"]) {
      await say(now, "ses_root", `# Planner\nTask: ${taskID}`)
      expect([await taskOf("ses_child"), await taskOf("ses_parent")]).toEqual([taskID, taskID])
      expect(stored("ses_child")).toMatchObject({ taskID, order: "Count the files", origin: "parent" })
    }
    const heard: unknown[] = []
    now.onTask(({ sessionID, isOff }) => sessionID === "ses_child" && isOff && heard.push(sessionID))
    await now.unbind("ses_root")
    expect(await taskOf("ses_child")).toBeUndefined()
    if (when === "in one process") {
      expect(heard).toEqual(["ses_child"])
      expect(now.cached("ses_child")).toBeUndefined()
      expect(asked.sort()).toEqual(["ses_child", "ses_parent", "ses_root"])
    }
    await say(now, "ses_root", "Task: ts-0aa111")
    expect(await taskOf("ses_child")).toBe("ts-0aa111")
    created.set("ses_other", "ses_root")
    await now.unbind("ses_child")
    expect([await taskOf("ses_child"), await taskOf("ses_other")]).toEqual([undefined, "ts-0aa111"])
  },
)

test(promised("task.B3", "a child keeps its task while its parent cannot be asked for"), async () => {
  const { tasks, create, store } = setUp({ change: () => ({ parent: async () => BUSY }) })
  await say(tasks, "ses_child", "Task: ts-b54507")
  const known = store.values.get("ses_child")
  const steps = known?.steps.map((step) => ({ ...step, origin: "parent" as const })) ?? []
  if (known) store.values.set("ses_child", { ...known, steps })
  expect(await create().find("ses_child")).toMatchObject({ taskID: "ts-b54507", origin: "parent" })
})

test(promised("soak.B4", "a session that is deleted while its task is looked for is not remembered"), async () => {
  const page = createDeferred<Result<{ messages: StoredMessage[] }>>()
  const { tasks, store } = setUp({ change: () => ({ messages: () => page.promise }) })
  const found = tasks.find("ses_1")
  const forgotten = tasks.forget("ses_1")
  page.resolve({ kind: "ok", value: { messages: [userSays("Task: ts-b54507")] } })
  await Promise.all([found, forgotten])
  expect(tasks.cached("ses_1")).toBeUndefined()
  expect(store.values.size).toBe(0)
})

test(promised(["start.A2", "words.A2"], "words of earlier sessions on the task are added, each once"), async () => {
  const { tasks, create } = setUp()
  await say(tasks, "ses_1", "Task: ts-b54507\nGo on.")
  const earlier = [userWords("Never touch the lexer.", 0, "ses_0", "msg_a"), userWords("Nor the AST.", 1, "ses_0")]
  for (let again = 0; again < 2; again++) await tasks.inherit("ses_1", "ts-b54507", earlier)
  await tasks.inherit("ses_1", "ts-b54507", [userWords("Its own, undone.", 2, "ses_1")])
  await tasks.inherit("ses_1", "ts-000002", [userWords("Another task's.", 3, "ses_0")])
  const expected = ["Never touch the lexer.", "Nor the AST.", "Task: ts-b54507\nGo on."]
  expect(saidIn(tasks.cached("ses_1"))).toEqual(expected)
  expect(saidIn(await create().find("ses_1"))).toEqual(expected)
})

const [OLD, NEW] = ["ts-b54507", "ts-0aa111"]
test.each<[what: string, messages: string[], bound: Partial<SessionTask>, lookedUp: string[], unknown?: string]>([
  ["binds", ["# Planner\nWork on ts-b54507"], { taskID: OLD, role: "planner", origin: "message" }, [OLD]],
  ["is not looked up for the task at hand", ["Work on ts-b54507", "Continue with ts-b54507"], { taskID: OLD }, [OLD]],
  ["re-binds", ["Work on ts-b54507", "Now work on ts-0aa111"], { taskID: NEW }, [OLD, NEW]],
  ["gives way to the exact line beside it", ["Work on ts-0aa111\nTask: ts-b54507"], { taskID: OLD }, []],
  ["binds by an id alone", ["ts-b54507"], { taskID: OLD }, [OLD]],
  ["leaves a known task by an id alone", ["Task: ts-b54507", "ts-0aa111"], { taskID: OLD }, [OLD]],
  ["replaces an unknown one by an id alone", ["Task: ts-b54507", "ts-0aa111"], { taskID: NEW }, [OLD, NEW], OLD],
])(promised("task.C1", "a natural spelling %s"), async (_what, messages, bound, lookedUp, unknown) => {
  const { tasks, lookUp } = setUp({ lookUp: async (id) => ({ kind: id === unknown ? "unknown" : "found" }) })
  for (const message of messages) await say(tasks, "ses_1", message)
  expect(tasks.cached("ses_1")).toMatchObject(bound)
  expect(lookUp.mock.calls.flat()).toEqual(lookedUp)
})

test(
  promised("words.A1", "words that follow while the task of the first message is looked up are the task's, too"),
  async () => {
    const asked = createDeferred<{ kind: "found" }>()
    const { tasks } = setUp({ lookUp: () => asked.promise })
    const first = say(tasks, "ses_1", "Work on ts-b54507")
    await say(tasks, "ses_1", "Never touch the lexer.")
    expect(await tasks.find("ses_1")).toBeUndefined()
    asked.resolve({ kind: "found" })
    await first
    await vi.waitUntil(() => saidIn(tasks.cached("ses_1"))?.join() === "Never touch the lexer.")
  },
)

test(promised("queue.A5", "a ticket of another tracker behind Task: binds where the ledger knows it"), async () => {
  const { tasks, lookUp } = setUp({ lookUp: async (id) => ({ kind: id === "proj-1234" ? "unknown" : "found" }) })
  const made: string[] = []
  const make = async (): Promise<void> => void made.push("made")
  const message = { sessionID: "ses_1", createdAt: NOW.getTime() }
  await tasks.userMessage({ ...message, messageID: "msg_1", text: "Task: PROJ-1234 fix the login redirect" }, make)
  expect(await tasks.find("ses_1")).toBeUndefined()
  expect(made, "it is only words, of which a task may be made").toEqual(["made"])
  await tasks.userMessage({ ...message, messageID: "msg_2", text: "Task: ABC-12345 fix it" }, make)
  expect(tasks.cached("ses_1")?.taskID).toBe("abc-12345")
  expect(made).toEqual(["made"])
  expect(lookUp.mock.calls.flat()).toEqual(["proj-1234", "abc-12345"])
})

test(
  promised("queue.A5", "ids that a message mentions without naming a task are given back, but the session's own"),
  async () => {
    const { tasks } = setUp({})
    expect(await say(tasks, "ses_1", "Is ts-b54507 done, or ts-0aa111?")).toEqual([OLD, NEW])
    expect(await say(tasks, "ses_1", "Work on ts-b54507, and see ts-0aa111.")).toEqual([OLD, NEW])
    expect(await say(tasks, "ses_1", "Work on ts-b54507. It is like ts-0aa111.")).toEqual([])
    expect(await say(tasks, "ses_1", "Is ts-b54507 like ts-0aa111?")).toEqual([NEW])
    expect(await say(tasks, "ses_1", "> Is ts-0aa111 done?\nThat is what I was asked.")).toEqual([])
  },
)

test.each([
  ["does not know the id", { kind: "unknown" } as const],
  ["cannot be asked", { kind: "unavailable", reason: "not within 2000 ms" } as const],
])(promised("task.C1", "a natural spelling does not bind where the ledger %s"), async (_, answer) => {
  const { tasks, store, entries } = setUp({ lookUp: async () => answer })
  await say(tasks, "ses_1", "Work on ts-b54507")
  expect(await tasks.find("ses_1")).toBeUndefined()
  expect(store.values.size).toBe(0)
  expect(entries.map(({ message }) => message).join()).toContain("that a message names: not bound")
  await say(tasks, "ses_1", "Task: ts-b54507")
  expect(tasks.cached("ses_1")?.taskID).toBe("ts-b54507")
})

test(promised(["task.C1", "trust.B1"], "the words of an agent to its subagent bind nothing"), async () => {
  const { tasks, created } = setUp({ parents: { ses_child: "ses_parent" } })
  await say(tasks, "ses_child", "Work on ts-b54507")
  expect(await tasks.find("ses_child")).toBeUndefined()
  await say(tasks, "ses_parent", "Task: ts-0aa111")
  created.set("ses_other", "ses_parent")
  await say(tasks, "ses_other", "Work on ts-0aa111")
  await tasks.find("ses_other")
  await say(tasks, "ses_other", "Continue with ts-0aa111")
  expect(tasks.cached("ses_other")?.origin).toBe("parent")
  for (const child of ["ses_child", "ses_other"]) {
    await say(tasks, child, "Look at this issue:\nTask: ts-b54507 Pay the invoices")
    expect((await tasks.find(child))?.taskID).toBe("ts-0aa111")
  }
})

test(
  promised(
    ["task.C1", "trust.B1"],
    "an agent's words to its subagent bind nothing from the history, when OpenCode starts again",
  ),
  async () => {
    const order = userSays("Task: ts-b54507 Pay the invoices")
    const { tasks } = setUp({ parents: { ses_child: "ses_parent" }, history: { ses_child: [order] } })
    expect(await tasks.find("ses_child")).toBeUndefined()
  },
)

test(promised("task.C1", "a message that came while the ledger was asked is newer"), async () => {
  const answer = createDeferred<{ kind: "found" }>()
  const { tasks, stored } = setUp({ lookUp: () => answer.promise })
  const first = say(tasks, "ses_1", "Work on ts-0aa111")
  await say(tasks, "ses_1", "Task: ts-b54507")
  answer.resolve({ kind: "found" })
  await first
  expect(tasks.cached("ses_1")?.taskID).toBe("ts-b54507")
  expect(stored("ses_1")?.taskID).toBe("ts-b54507")
})

test(promised("task.C1", "the history is searched for natural spellings, but for an id alone"), async () => {
  const lookUp = async (id: string) => ({ kind: id === "ts-b54507" ? ("found" as const) : ("unknown" as const) })
  const history = ["Work on ts-b54507", "ts-b54508", "Task ts-0000ab"].map((text) => userSays(text))
  const set = setUp({ history: { ses_1: history }, lookUp })
  expect(await set.tasks.find("ses_1")).toMatchObject({ taskID: "ts-b54507", origin: "history" })
  expect(set.lookUp.mock.calls).toEqual([["ts-0000ab"], ["ts-b54507"]])
})

test(promised("task.C2", "a natural spelling binds where the ledger is lost, not where none was"), async () => {
  const missingDatabase = "/home/me/.prog/prog.db"
  const lookUp = async () => ({ kind: "unavailable", reason: "it is missing", missingDatabase }) as const
  const { tasks } = setUp({ lookUp })
  await say(tasks, "ses_1", "Work on ts-b54507")
  expect(tasks.cached("ses_1")).toBeUndefined()
  await say(tasks, "ses_2", "Task: ts-0aa111")
  await say(tasks, "ses_1", "Work on ts-b54507")
  expect(tasks.cached("ses_1")?.taskID).toBe("ts-b54507")
})

test(promised("task.D1", "a task that is taken off stays off after a restart, until a message names one"), async () => {
  const named = userSays("Task: ts-b54507")
  const { tasks, create, created } = setUp({
    history: { ses_1: [named] },
    change: () => ({ message: async () => ({ kind: "ok", value: named }) }),
  })
  const heard: unknown[] = []
  tasks.onTask(({ taskID, isOff }) => heard.push([taskID, isOff]))
  await say(tasks, "ses_1", "Task: ts-b54507")
  expect(await tasks.unbind("ses_1")).toMatchObject({ taskID: "ts-b54507" })
  expect(await tasks.unbind("ses_1")).toBeUndefined()
  expect(tasks.cached("ses_1")).toBeUndefined()
  expect(heard).toEqual([
    ["ts-b54507", undefined],
    ["ts-b54507", true],
  ])
  const restarted = create()
  expect(await restarted.find("ses_1")).toBeUndefined()
  created.set("ses_2", "ses_1")
  expect(await restarted.find("ses_2")).toBeUndefined()
  await say(restarted, "ses_1", "Task: ts-b54507")
  expect((await create().find("ses_1"))?.taskID).toBe("ts-b54507")
  await restarted.bindTo("ses_3", "ts-c0ffee", "msg_made")
  expect(await create().find("ses_3")).toMatchObject({ taskID: "ts-c0ffee", messageID: "msg_made" })
})

test(promised("live-state.A2", "a listener is told of each session's task once it is known"), async () => {
  const { tasks, create } = setUp({ history: { ses_2: [userSays("Task: ts-0ddba11")] } })
  const heard: string[] = []
  await say(tasks, "ses_1", "Task: ts-b54507")
  tasks.onTask(({ sessionID, taskID }) => heard.push(`${sessionID} ${taskID}`))
  await tasks.find("ses_2")
  await say(tasks, "ses_1", "Task: ts-c0ffee")
  expect(heard).toEqual(["ses_1 ts-b54507", "ses_2 ts-0ddba11", "ses_1 ts-c0ffee"])
  const restarted = create()
  restarted.onTask(({ taskID }) => heard.push(taskID))
  await restarted.find("ses_1")
  expect(heard.at(-1)).toBe("ts-c0ffee")
})
