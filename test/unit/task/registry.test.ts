import { describe, expect, test } from "vitest"
import type { MessagePage, Result, StoredMessage } from "../../../.opencode/baton/host/sessions.ts"
import type { JsonStore } from "../../../.opencode/baton/host/state.ts"
import { createTaskRegistry, type SessionTask } from "../../../.opencode/baton/task/registry.ts"
import { promised } from "../../requirements.ts"
import { createFakeSessions } from "../../support/opencode/fake-sessions.ts"
import { assistantMessage, textPart, userMessage } from "../../support/opencode/stored-messages.ts"
import { createRecordedLog } from "../../support/recorded-log.ts"

const NOW = new Date("2026-01-01T00:00:00.000Z")

const createMemoryStore = (): Pick<JsonStore<SessionTask>, "read" | "write" | "remove"> & {
  values: Map<string, SessionTask>
} => {
  const values = new Map<string, SessionTask>()
  return {
    values,
    read: async (sessionID) => values.get(sessionID),
    write: async (sessionID, value) => {
      values.set(sessionID, value)
      return true
    },
    remove: async (sessionID) => {
      values.delete(sessionID)
    },
  }
}

const said = (text: string, extra: { synthetic?: boolean } = {}) => userMessage([textPart(text, extra)])

/** A session's history behind cursors, as the server pages it; counts the messages read. */
const createHistory = (history: Record<string, StoredMessage[]>, parents: Record<string, string> = {}) => {
  const read = { calls: 0, messages: 0 }
  return {
    read,
    messages: async (sessionID: string, limit: number, cursor?: string): Promise<Result<MessagePage>> => {
      const all = history[sessionID] ?? []
      const end = cursor === undefined ? all.length : Number(cursor)
      const start = Math.max(0, end - limit)
      read.calls++
      read.messages += end - start
      const messages = all.slice(start, end)
      return { kind: "ok", value: start > 0 ? { messages, older: String(start) } : { messages } }
    },
    parent: async (sessionID: string): Promise<Result<string | undefined>> => ({
      kind: "ok",
      value: parents[sessionID],
    }),
  }
}

const setUp = (options: { history?: Record<string, StoredMessage[]>; parents?: Record<string, string> } = {}) => {
  const store = createMemoryStore()
  const sessions = createHistory(options.history ?? {}, options.parents)
  const log = createRecordedLog()
  const create = () => createTaskRegistry({ store, sessions, log, now: () => NOW })
  return { store, sessions, entries: log.lines, create, tasks: create() }
}

describe("the task registry", () => {
  test(
    promised("task.B2", "a Task line in a user's message binds the session at once, without reading any message"),
    async () => {
      const { tasks, store, sessions } = setUp()
      await tasks.userMessage("ses_1", "# Planner\nTask: ts-b54507\nMind the lexer.")
      expect(tasks.cached("ses_1")).toMatchObject({ taskID: "ts-b54507", role: "planner", origin: "message" })
      expect(store.values.get("ses_1")?.boundAt).toBe(NOW.toISOString())
      expect(sessions.read.calls).toBe(0)
    },
  )

  test(promised("task.B2", "a restart knows the task from disk"), async () => {
    const { tasks, create, sessions } = setUp()
    await tasks.userMessage("ses_1", "Task: ts-b54507")
    expect(await create().find("ses_1")).toMatchObject({ taskID: "ts-b54507" })
    expect(sessions.read.calls).toBe(0)
  })

  test(promised("task.B2", "the same task named again after a restart keeps the first brief"), async () => {
    const { tasks, create } = setUp()
    await tasks.userMessage("ses_1", "Task: ts-b54507\nThe whole brief.")
    const later = create()
    await later.userMessage("ses_1", "Task: ts-b54507\ngo on")
    expect(later.cached("ses_1")?.brief).toContain("The whole brief.")
  })

  test(
    promised("task.B2", "found late, a task in the newest page costs one page at 10 messages and at 10,000"),
    async () => {
      const filler = (length: number) => Array.from({ length }, (_, at) => assistantMessage(`step ${at}`))
      for (const length of [9, 9_999]) {
        const { tasks, sessions } = setUp({ history: { ses_1: [...filler(length), said("Task: ts-b54507")] } })
        expect(await tasks.find("ses_1")).toMatchObject({ taskID: "ts-b54507", origin: "history" })
        expect(sessions.read.calls).toBe(1)
        expect(sessions.read.messages).toBeLessThanOrEqual(50)
      }
    },
  )

  test(
    promised("task.B2", "the search ends at its deadline, in pages, and never reads the whole history in one"),
    async () => {
      const history = {
        ses_1: [said("Task: ts-b54507"), ...Array.from({ length: 9_999 }, () => assistantMessage("x"))],
      }
      const sessions = createHistory(history)
      let clock = 0
      const tasks = createTaskRegistry({
        store: createMemoryStore(),
        sessions,
        log: createRecordedLog(),
        now: () => {
          clock += 100
          return new Date(clock)
        },
        searchDeadlineMs: 1_000,
      })
      expect(await tasks.find("ses_1")).toBeUndefined()
      expect(sessions.read.messages).toBeLessThan(1_000)
    },
  )

  test(promised("task.B2", "a search that ran out of time takes no session for one without a task"), async () => {
    const history = { ses_1: [said("Task: ts-b54507"), ...Array.from({ length: 999 }, () => assistantMessage("x"))] }
    let isSlow = true
    let clock = 0
    const now = () => {
      clock += isSlow ? 100 : 0
      return new Date(clock)
    }
    const sessions = createHistory(history)
    const log = createRecordedLog()
    const tasks = createTaskRegistry({ store: createMemoryStore(), sessions, log, now, searchDeadlineMs: 1_000 })
    expect(await tasks.find("ses_1")).toBeUndefined()
    isSlow = false
    expect(await tasks.find("ses_1")).toMatchObject({ taskID: "ts-b54507" })
  })

  test(promised("task.B2", "without cursors (1.2.15) a task is found however far back it is named"), async () => {
    const messages = [said("Task: ts-b54507"), ...Array.from({ length: 999 }, () => assistantMessage("x"))]
    const sessions = createFakeSessions(new Map([["ses_1", { messages }]]), { cursors: false })
    const tasks = createTaskRegistry({ store: createMemoryStore(), sessions, log: createRecordedLog(), now: () => NOW })
    expect(await tasks.find("ses_1")).toMatchObject({ taskID: "ts-b54507" })
  })

  test(promised("task.B2", "a history that cannot be read now is read when the task is asked for again"), async () => {
    const { store, sessions } = setUp({ history: { ses_1: [said("Task: ts-b54507")] } })
    let failures = 1
    const flaky: typeof sessions = {
      ...sessions,
      messages: async (...args) =>
        failures-- > 0 ? { kind: "failed", reason: "busy" } : await sessions.messages(...args),
    }
    const tasks = createTaskRegistry({ store, sessions: flaky, log: createRecordedLog(), now: () => NOW })
    expect(await tasks.find("ses_1")).toBeUndefined()
    expect(await tasks.find("ses_1")).toMatchObject({ taskID: "ts-b54507" })
  })

  test(promised("task.B3", "a parent that cannot be told now is asked for again"), async () => {
    const { store, sessions } = setUp({ history: { ses_parent: [said("Task: ts-b54507")] } })
    let failures = 1
    const flaky: typeof sessions = {
      ...sessions,
      parent: async (sessionID) =>
        failures-- > 0
          ? { kind: "failed", reason: "busy" }
          : { kind: "ok", value: sessionID === "ses_child" ? "ses_parent" : undefined },
    }
    const tasks = createTaskRegistry({ store, sessions: flaky, log: createRecordedLog(), now: () => NOW })
    expect(await tasks.find("ses_child")).toBeUndefined()
    expect(await tasks.find("ses_child")).toMatchObject({ taskID: "ts-b54507", origin: "parent" })
  })

  test(promised("task.B3", "a task named while the history is searched counts, in memory and on disk"), async () => {
    const { store, sessions } = setUp({ history: { ses_1: [said("Task: ts-0000a1")] } })
    let answer = () => {}
    const asked = new Promise<void>((resolve) => {
      answer = resolve
    })
    const slow: typeof sessions = {
      ...sessions,
      messages: async (...args) => {
        await asked
        return sessions.messages(...args)
      },
    }
    const tasks = createTaskRegistry({ store, sessions: slow, log: createRecordedLog(), now: () => NOW })
    await tasks.userMessage("ses_1", "go on")
    await tasks.userMessage("ses_1", "Task: ts-b54507")
    answer()
    expect(await tasks.find("ses_1")).toMatchObject({ taskID: "ts-b54507" })
    await new Promise((resolve) => setImmediate(resolve))
    expect(tasks.cached("ses_1")?.taskID).toBe("ts-b54507")
    expect(store.values.get("ses_1")?.taskID).toBe("ts-b54507")
  })

  test(promised("task.B3", "of two bindings at once the later one ends up on disk"), async () => {
    const { store } = setUp()
    const writes: (() => void)[] = []
    const slow: Pick<JsonStore<SessionTask>, "read" | "write" | "remove"> = {
      ...store,
      write: (sessionID, value) =>
        new Promise((resolve) => {
          writes.push(() => resolve(store.write(sessionID, value)))
        }),
    }
    const tasks = createTaskRegistry({
      store: slow,
      sessions: createHistory({}),
      log: createRecordedLog(),
      now: () => NOW,
    })
    const both = Promise.all([
      tasks.userMessage("ses_1", "Task: ts-0000a1"),
      tasks.userMessage("ses_1", "Task: ts-b54507"),
    ])
    for (let at = 0; at < 2; at++) {
      await new Promise((resolve) => setImmediate(resolve))
      // The newest write ends first, as on a busy disk.
      writes.pop()?.()
    }
    await both
    expect(store.values.get("ses_1")?.taskID).toBe("ts-b54507")
  })

  test(promised("task.B3", "a session deleted while its task is looked for stays forgotten"), async () => {
    const { tasks, store } = setUp({ history: { ses_1: [said("Task: ts-b54507")] } })
    const found = tasks.find("ses_1")
    await tasks.forget("ses_1")
    await found
    expect(store.values.size).toBe(0)
  })

  test(promised("task.B1", "synthetic and assistant text never bind a session"), async () => {
    const history = {
      ses_1: [said("Task: ts-000001", { synthetic: true }), assistantMessage("Task: ts-000002")],
    }
    expect(await setUp({ history }).tasks.find("ses_1")).toBeUndefined()
  })

  test(promised("task.B3", "a child session has its parent's task and role and its own brief"), async () => {
    const { tasks } = setUp()
    await tasks.userMessage("ses_parent", "# Planner\nTask: ts-b54507\nThe parent's brief")
    tasks.sessionCreated("ses_child", "ses_parent")
    await tasks.userMessage("ses_child", "Count the files")
    expect(await tasks.find("ses_child")).toMatchObject({
      taskID: "ts-b54507",
      role: "planner",
      brief: "Count the files",
      origin: "parent",
    })
  })

  test(promised("task.B3", "a grandchild inherits through the chain, and a cycle of parents ends"), async () => {
    const { tasks } = setUp({ parents: { ses_c: "ses_b", ses_b: "ses_a", ses_x: "ses_y", ses_y: "ses_x" } })
    await tasks.userMessage("ses_a", "Task: ts-b54507")
    expect(await tasks.find("ses_c")).toMatchObject({ taskID: "ts-b54507", origin: "parent" })
    expect(await setUp({ parents: { ses_x: "ses_x" } }).tasks.find("ses_x")).toBeUndefined()
  })

  test(promised("task.B3", "another Task line re-binds and says from what to what"), async () => {
    const { tasks, entries } = setUp()
    await tasks.userMessage("ses_1", "Task: ts-b54507")
    await tasks.userMessage("ses_1", "Task: ts-0aa111")
    expect(tasks.cached("ses_1")?.taskID).toBe("ts-0aa111")
    expect(entries.find(({ message }) => message.includes("changed its task"))?.extra).toMatchObject({
      from: "ts-b54507",
      to: "ts-0aa111",
    })
  })

  test(promised("task.B3", "a deleted session is forgotten in memory and on disk"), async () => {
    const { tasks, store } = setUp()
    await tasks.userMessage("ses_1", "Task: ts-b54507")
    await tasks.forget("ses_1")
    expect(tasks.cached("ses_1")).toBeUndefined()
    expect(store.values.size).toBe(0)
  })

  test(promised("soak.B4", "a session that is deleted while its task is looked for is not remembered"), async () => {
    const { sessions, store } = setUp()
    let answer: (page: Result<MessagePage>) => void = () => {}
    const page = new Promise<Result<MessagePage>>((resolve) => {
      answer = resolve
    })
    const slow = { ...sessions, messages: () => page }
    const tasks = createTaskRegistry({ store, sessions: slow, log: createRecordedLog(), now: () => NOW })
    const found = tasks.find("ses_1")
    const forgotten = tasks.forget("ses_1")
    answer({ kind: "ok", value: { messages: [said("Task: ts-b54507")] } })
    await Promise.all([found, forgotten])
    expect(tasks.cached("ses_1")).toBeUndefined()
    expect(store.values.size).toBe(0)
  })

  test(promised("task.B4", "a session without a task is said once, at debug level, and stores nothing"), async () => {
    const { tasks, entries, store } = setUp({ history: { ses_1: [said("hello")] } })
    await tasks.userMessage("ses_1", "hello")
    await tasks.find("ses_1")
    await tasks.userMessage("ses_1", "hello again")
    await tasks.find("ses_1")
    expect(entries.map(({ level }) => level)).toEqual(["debug"])
    expect(store.values.size).toBe(0)
  })

  test(promised("start.A2", "what an earlier session was asked for is added to the brief, once"), async () => {
    const { tasks, store } = setUp()
    await tasks.userMessage("ses_1", "Task: ts-b54507")
    await tasks.addToBrief("ses_1", "ts-b54507", "Never touch the lexer.\n")
    await tasks.addToBrief("ses_1", "ts-b54507", "Never touch the lexer.")
    await tasks.addToBrief("ses_1", "ts-000002", "Another task's brief.")
    expect(tasks.cached("ses_1")?.brief).toBe("Task: ts-b54507\n\nNever touch the lexer.")
    expect((await store.read("ses_1"))?.brief).toBe("Task: ts-b54507\n\nNever touch the lexer.")
  })
})
