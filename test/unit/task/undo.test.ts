import { describe, expect, test } from "vitest"
import { createDeferred } from "../../../.opencode/baton/host/async.ts"
import { createTaskRegistry } from "../../../.opencode/baton/task/registry.ts"
import type { TaskRecord } from "../../../.opencode/baton/task/session-task.ts"
import { promised } from "../../requirements.ts"
import { createFakeSessions, createMemoryStore, createRecordedLog } from "../../support/unit.ts"

const [FIRST, SECOND] = ["ts-b54507", "ts-0aa111"]
const START = Date.parse("2026-01-01T00:00:00.000Z")

/** A registry whose OpenCode hides the messages in `hidden`, and gives no answer where that is undefined. */
const setUp = () => {
  const opencode = { hidden: new Set<string>() as Set<string> | undefined, gate: Promise.resolve(), asked: 0 }
  const store = createMemoryStore<TaskRecord>()
  const create = () =>
    createTaskRegistry({
      store,
      sessions: createFakeSessions(new Map()),
      parents: new Map(),
      lookUp: async () => ({ kind: "found" }),
      shownMessages: async (_sessionID, ids) => {
        const { hidden } = opencode
        opencode.asked++
        await opencode.gate
        return hidden && new Set(ids.filter((id) => !hidden.has(id)))
      },
      log: createRecordedLog(),
      now: () => new Date(START),
    })
  const tasks = create()
  /** Sends a message, as the feature does. */
  const say = async (messageID: string, text: string, registry = tasks, sessionID = "ses_1", command = "") => {
    await registry.followUndo(sessionID, messageID)
    const given = command === "" ? undefined : { name: command, arguments: "off" }
    const createdAt = START + Number(messageID.slice(4)) * 1_000
    await registry.userMessage({ sessionID, messageID, createdAt, text, command: given })
  }
  const follow = async (hidden: string[] | undefined) => {
    opencode.hidden = hidden && new Set(hidden)
    const { undone, redone } = await tasks.followUndo("ses_1")
    return { undone: undone.map(({ taskID }) => taskID), redone: redone.map(({ taskID }) => taskID) }
  }
  const now = (registry = tasks) => {
    const task = registry.cached("ses_1")
    return task && [task.taskID, ...task.said.words.map(({ text }) => text)]
  }
  return { tasks, create, store, opencode, say, follow, now }
}

describe("an undo", () => {
  test(promised("words.A3", "an undo hides task and words until the redo, and the record keeps both"), async () => {
    const { say, follow, now, store } = setUp()
    await say("msg_1", `Task: ${FIRST}\nMind the lexer.`)
    await say("msg_2", "Nor the AST.")
    await say("msg_3", `# Planner\nTask: ${SECOND}\nPlan it.`)
    const before = now()
    const record = store.values.get("ses_1")
    expect(await follow(["msg_3"])).toEqual({ undone: [SECOND], redone: [] })
    expect(now()).toEqual([FIRST, `Task: ${FIRST}\nMind the lexer.`, "Nor the AST."])
    expect(await follow(["msg_3", "msg_2"])).toEqual({ undone: [], redone: [] })
    expect(now()).toEqual([FIRST, `Task: ${FIRST}\nMind the lexer.`])
    expect(await follow(["msg_3", "msg_2", "msg_1"])).toEqual({ undone: [FIRST], redone: [] })
    expect(now()).toBeUndefined()
    expect(store.values.get("ses_1")).toEqual(record)
    expect(await follow([])).toEqual({ undone: [], redone: [FIRST, SECOND] })
    expect(now()).toEqual(before)
  })

  test(promised("words.A3", "an undo that the next message makes final takes both for good"), async () => {
    const { say, follow, now, create, opencode } = setUp()
    await say("msg_1", `Task: ${FIRST}\nMind the lexer.`)
    await say("msg_2", `Task: ${SECOND}\nPlan it.`)
    await follow(["msg_2"])
    await say("msg_3", "Go on.")
    opencode.hidden = new Set()
    const restarted = create()
    await restarted.followUndo("ses_1")
    for (const registry of [undefined, restarted])
      expect(now(registry)).toEqual([FIRST, `Task: ${FIRST}\nMind the lexer.`, "Go on."])
  })

  test(promised("words.A3", "an undo that another process saw is followed with the next message"), async () => {
    const { say, now, create, opencode } = setUp()
    await say("msg_1", `Task: ${FIRST}\nMind the lexer.`)
    await say("msg_2", `Task: ${SECOND}\nPlan it.`)
    opencode.hidden = new Set(["msg_2"])
    const restarted = create()
    await say("msg_3", "Go on.", restarted)
    expect(now(restarted)).toEqual([FIRST, `Task: ${FIRST}\nMind the lexer.`, "Go on."])
  })

  test(promised("words.A3", "an undo that another process saw is followed before any message, too"), async () => {
    const { say, now, create, opencode } = setUp()
    await say("msg_1", `Task: ${FIRST}\nMind the lexer.`)
    await say("msg_2", `Task: ${SECOND}\nPlan it.`)
    opencode.hidden = new Set(["msg_2"])
    const restarted = create()
    expect((await restarted.find("ses_1"))?.taskID).toBe(FIRST)
    expect(now(restarted)).toEqual([FIRST, `Task: ${FIRST}\nMind the lexer.`])
    opencode.hidden = new Set(["msg_1", "msg_2"])
    expect(await create().find("ses_1")).toBeUndefined()
  })

  test(
    promised("words.A3", "an undo changes nothing while OpenCode does not answer, and is followed later"),
    async () => {
      const { say, follow, now, tasks } = setUp()
      await say("msg_1", `Task: ${FIRST}`)
      await say("msg_2", `Task: ${SECOND}`)
      expect(await follow(undefined)).toEqual({ undone: [], redone: [] })
      expect(await tasks.followUndo("ses_1", "msg_9")).toEqual({ undone: [], redone: [] })
      expect(now()).toEqual([SECOND])
      expect(await follow(["msg_2"])).toEqual({ undone: [SECOND], redone: [] })
      expect(now()).toEqual([FIRST])
    },
  )

  test(promised("words.A3", "an undo and a redo at once end with the redo, and a request waits for both"), async () => {
    const { say, tasks, now, opencode } = setUp()
    await say("msg_1", `Task: ${FIRST}`)
    await say("msg_2", `Task: ${SECOND}`)
    const gate = createDeferred<void>()
    opencode.gate = gate.promise
    opencode.hidden = new Set(["msg_2"])
    const looks = [tasks.followUndo("ses_1")]
    await expect.poll(() => opencode.asked).toBe(1)
    opencode.hidden = new Set()
    looks.push(tasks.followUndo("ses_1"))
    const found = tasks.find("ses_1")
    gate.resolve()
    const [undone, redone] = await Promise.all(looks)
    expect(undone?.undone).toMatchObject([{ taskID: SECOND }])
    expect(redone?.redone).toMatchObject([{ taskID: SECOND }])
    expect((await found)?.taskID).toBe(SECOND)
    expect(now()).toEqual([SECOND])
  })

  test(promised("words.A3", "an undo takes back `/task off`, whose message comes after it"), async () => {
    const { say, follow, now, tasks } = setUp()
    await say("msg_1", `Task: ${FIRST}`)
    await tasks.unbind("ses_1")
    await say("msg_2", "/task\n\nThis session works on no task any more.", tasks, "ses_1", "task")
    expect(now()).toBeUndefined()
    await follow(["msg_2"])
    expect(now()).toEqual([FIRST])
    await follow([])
    expect(now()).toBeUndefined()
  })

  test(promised("words.A3", "an undo of what was said after `/task off` brings no task back"), async () => {
    const { say, follow, now, tasks } = setUp()
    await say("msg_1", `Task: ${FIRST}`)
    await tasks.unbind("ses_1")
    await say("msg_2", "Hello.")
    await follow(["msg_2"])
    expect(now()).toBeUndefined()
  })

  test(promised("words.A3", "an undo says of a task whether Baton made it"), async () => {
    const { tasks, opencode } = setUp()
    await tasks.bindTo("ses_1", FIRST, "msg_1")
    opencode.hidden = new Set(["msg_1"])
    expect((await tasks.followUndo("ses_1")).undone).toMatchObject([{ taskID: FIRST, isMade: true }])
  })
})

test(promised("words.A3", "other sessions have a task, on disk or in memory, until they leave it"), async () => {
  const { tasks, create, say } = setUp()
  for (const [at, sessionID] of ["ses_1", "ses_2", "ses_3"].entries())
    await say(`msg_${at}`, `Task: ${FIRST}`, tasks, sessionID)
  await say("msg_4", `Task: ${SECOND}`, tasks, "ses_4")
  for (const registry of [tasks, create()]) expect(await registry.othersOn(FIRST, "ses_1")).toEqual(["ses_2", "ses_3"])
  await tasks.unbind("ses_2")
  for (const registry of [tasks, create()]) expect(await registry.othersOn(FIRST, "ses_1")).toEqual(["ses_3"])
})
