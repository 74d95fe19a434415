import { mkdirSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { createTaskCommand } from "../../../.opencode/baton/compaction/task-command.ts"
import { untrusted } from "../../../.opencode/baton/host/quoted.ts"
import { DEFAULT_SETTINGS } from "../../../.opencode/baton/host/settings.ts"
import type { OutboxEntry } from "../../../.opencode/baton/ledger/outbox-store.ts"
import type { SessionTask } from "../../../.opencode/baton/task/registry.ts"
import { promised } from "../../requirements.ts"
import { createScriptedLedger } from "../../support/ledger/scripted-ledger.ts"
import { BINDING, createFakeSessions, createRecordedLog, temporaryFolder, userSays } from "../../support/unit.ts"

const { taskID } = BINDING
const LONG = "Teach the parser CRLF line ends, without touching the lexer. Keep the public API."

const FIRST = { messageID: "msg_1", text: LONG }

type Known = { binding?: SessionTask | undefined; autoTask?: boolean; isFork?: boolean; ids?: readonly string[] }

const setUp = (known: Known = {}) => {
  const { autoTask = true, isFork = false, ids = ["ts-0000aa"] } = known
  const binding = "binding" in known ? known.binding : BINDING
  const { ledger, script, calls, task: ledgerTask } = createScriptedLedger([...(binding ? [taskID] : []), ...ids])
  const root = join(temporaryFolder(), "project")
  mkdirSync(root)
  const bound: string[] = []
  const told: string[] = []
  const others: string[] = []
  const released: string[] = []
  const logged: OutboxEntry[] = []
  let current: SessionTask | undefined = binding
  const command = createTaskCommand({
    sessions: createFakeSessions(new Map([["ses_1", { messages: isFork ? [userSays("Go.")] : [] }]])),
    outbox: { add: async (entry) => void logged.push(entry) },
    ledger,
    isIdleOn: async (_taskID, sessionID) => sessionID === "ses_idle",
    tasks: {
      find: async () => current,
      othersOn: async () => others,
      bindTo: async (_sessionID, id, messageID) => void bound.push(`${id} ${messageID}`),
      unbind: async () => {
        const before = current
        current = undefined
        return before
      },
    },
    settings: async () => ({ ...DEFAULT_SETTINGS, autoTask }),
    releaseClaim: async (sessionID) => void released.push(sessionID),
    notices: ({ title }) => void told.push(title),
    projectRoot: root,
    log: createRecordedLog(),
    now: () => new Date("2026-01-01T03:00:00Z"),
  })
  return { ...command, script, calls, ledgerTask, bound, others, released, logged, told }
}

describe("/task", () => {
  test(promised("task.D1", "/task alone shows the task and what is ready, and binds nothing"), async () => {
    const text = await setUp().expand("ses_1", "")
    expect(text).toContain(`This session's task: ${taskID}, ${taskID} (open)`)
    expect(text).toContain("Ready in project:\n- ts-0000aa  ts-0000aa")
    expect(text).not.toMatch(/^Task:/m)
  })

  test.each([
    ["ts-0000AA", "Task: ts-0000aa\n\nBegin the work on it."],
    ['"ts-0000aa Mind the lexer."', "Task: ts-0000aa\n\nMind the lexer."],
    ["new  Teach it CRLF ", "Task: ts-add002\n\nTeach it CRLF"],
  ])(promised("task.D1", "/task with %j begins the work"), async (given, text) => {
    expect(await setUp().expand("ses_1", given)).toBe(text)
  })

  test(promised("task.D1", "/task done and off end the claim; a second off has nothing to do"), async () => {
    const { expand, calls, released } = setUp()
    expect(await expand("ses_1", "done")).toContain(`Task ${taskID} is done.`)
    expect(await expand("ses_1", "off")).toContain(`it was ${taskID}`)
    expect(await expand("ses_1", "off")).toContain("This session has no task.")
    expect(await expand("ses_1", "done")).toContain("no task that could be done")
    expect(calls.filter((call) => call.startsWith("done"))).toEqual([`done ${taskID}`])
    expect(released).toEqual(["ses_1", "ses_1"])
  })

  test(
    promised("queue.A4", "/task queue takes the conversation's label off the session's task, and says so"),
    async () => {
      const { expand, ledgerTask, calls, script } = setUp()
      ledgerTask(taskID).labels = ["conversation", "lexer"]
      for (const time of ["first", "second"]) expect(await expand("ses_1", "queue"), time).toContain("is in the queue")
      expect(ledgerTask(taskID).labels).toEqual(["lexer"])
      expect(calls.filter((call) => call.startsWith("unlabel"))).toEqual([`unlabel ${taskID} conversation`])
      ledgerTask(taskID).labels = ["conversation"]
      script.fault = () => "refused"
      expect(await expand("ses_1", "queue")).toContain(`${taskID} was not put into the queue: scripted refused.`)
      await expand("ses_1", "off")
      expect(await expand("ses_1", "queue")).toContain("no task that could be queued")
    },
  )

  test(promised("task.D1", "/task says what failed, and which words there are"), async () => {
    const { expand, script } = setUp()
    script.fault = () => "refused"
    script.readable = false
    expect(await expand("ses_1", "done")).toContain(`Task ${taskID} was not set to done: scripted refused.`)
    expect(await expand("ses_1", "new A title")).toContain("The task was not made: scripted.")
    expect(await expand("ses_1", "new")).toContain("A task needs a title")
    expect(await expand("ses_1", "")).toContain("the ledger does not answer")
    expect(await expand("ses_1", "nonsense")).toContain("The tasks cannot be searched: the ledger does not answer.")
  })
})

describe("/task alone", () => {
  const ids = Array.from({ length: 14 }, (_, at) => `ts-00000${at.toString(16)}`)
  const HANDOFF =
    "Spec.\n\n<!-- baton:handoff 0123456789ab, replaced at each compaction -->\n# Work in progress (session ses_9, 2026-01-01T01:00:00.000Z)\n\n## Next\n- Run the tests.\n<!-- /baton:handoff -->"

  test(
    promised(
      "queue.A5",
      "/task alone shows what is in progress and free, with when and what is next, then ready, then waiting",
    ),
    async () => {
      const { expand, ledgerTask, script, calls } = setUp({ ids: ids.slice(0, 9) })
      const [next, logged, taken, ready, blocked, reviewing, waiting, chat, closed] = ids.map((id) => ledgerTask(id))
      Object.assign(next ?? {}, { status: "in_progress", description: HANDOFF, title: "Teach CRLF" })
      Object.assign(logged ?? {}, {
        status: "in_progress",
        messages: ["Begun.", "Half of it\nis done."],
        labels: ["conversation"],
      })
      Object.assign(taken ?? {}, { status: "in_progress" })
      Object.assign(ready ?? {}, { status: "open" })
      Object.assign(blocked ?? {}, { status: "blocked" })
      Object.assign(reviewing ?? {}, { status: "reviewing" })
      Object.assign(waiting ?? {}, { status: "open" })
      Object.assign(chat ?? {}, { status: "open", labels: ["conversation"] })
      Object.assign(closed ?? {}, { status: "done" })
      script.claims.set(ids[2] ?? "", { session: "ses_2", isOwn: false, summary: untrusted("ada since 10:00") })
      // An idle session of this project gives it up.
      script.claims.set(ids[1] ?? "", { session: "ses_idle", isOwn: false, summary: untrusted("your other session") })
      script.waiting.add(ids[6] ?? "")
      const shown = (await expand("ses_1", "")).split("\n\n")
      expect(shown.slice(2, -2)).toEqual([
        "In progress and free, in project:\n- ts-000000  Teach CRLF\n  2h ago, next: Run the tests.\n- ts-000001  ts-000001\n  3h ago, last: Half of it is done.",
        "Ready in project:\n- ts-000003  ts-000003",
        "Waiting:\n- ts-000004  ts-000004 (blocked)\n- ts-000005  ts-000005 (reviewing)\n- ts-000006  ts-000006 (waits for another task)",
        "At work elsewhere:\n- ts-000002  ts-000002\n  claimed by ada since 10:00",
      ])
      expect(calls.filter((call) => call.startsWith("show"))).toEqual([
        `show ${taskID}`,
        "show ts-000000",
        "show ts-000001",
      ])
    },
  )

  test(
    promised("queue.A5", "/task alone reads ten tasks at most, the newest, and says how many more there are"),
    async () => {
      const { expand, ledgerTask, calls } = setUp({ binding: undefined, ids })
      for (const id of ids) ledgerTask(id).status = "in_progress"
      const shown = await expand("ses_1", "")
      expect(shown).toContain("and 4 more: `/task WORD` finds them")
      expect(calls).toEqual(ids.slice(-10).map((id) => `show ${id}`))
    },
  )

  test(
    promised("queue.A5", "/task with words looks in ids and titles of what is not closed, in any case"),
    async () => {
      const { expand, ledgerTask, calls } = setUp({ ids: ids.slice(0, 4) })
      Object.assign(ledgerTask("ts-000000"), { title: "Teach the Парсер CRLF", status: "in_progress" })
      Object.assign(ledgerTask("ts-000001"), { title: "Teach the lexer CRLF", labels: ["conversation"] })
      Object.assign(ledgerTask("ts-000002"), { title: "Teach CRLF", status: "canceled" })
      expect(await expand("ses_1", "crlf teach")).toContain(
        "In project:\n- ts-000000  Teach the Парсер CRLF (in progress)\n- ts-000001  Teach the lexer CRLF (open)\n",
      )
      expect(await expand("ses_1", "парсер")).toContain("- ts-000000")
      expect(await expand("ses_1", "0003")).toContain("- ts-000003")
      expect(await expand("ses_1", "nonsense")).toContain("No task of project that is not closed has “nonsense”")
      expect(await expand("ses_1", "PROJ-1234 login"), "of another tracker").toContain("“PROJ-1234 login”")
      expect(calls).toEqual(["show proj-1234"])
    },
  )
})

describe("a ledger that does not answer", () => {
  test(
    promised(
      "task.D1",
      "a ledger that does not answer leaves open whether the task is done: the program may still be at it",
    ),
    async () => {
      const { expand, script, released } = setUp()
      script.fault = () => "written-unheard"
      const answer = await expand("ses_1", "done")
      expect(answer).toContain(`Whether task ${taskID} is done is not known: no answer. \`prog show ${taskID}\` tells.`)
      expect(answer).not.toContain("not set to done")
      expect(released).toEqual([])
    },
  )
})

describe("the first message as a task", () => {
  test.each<[Known, string[]]>([
    [{}, ["ts-add002 msg_1"]],
    [{ autoTask: false }, []],
    [{ isFork: true }, []],
  ])(promised("task.D2", "a first message with %j binds %j"), async (known, ids) => {
    const { begin, bound } = setUp(known)
    expect(await begin("ses_1", FIRST)).toBe(ids.length > 0)
    expect(bound).toEqual(ids)
  })

  test(
    promised("queue.A4", "a first message's task has the conversation's label, which one of /task new has not"),
    async () => {
      const { begin, expand, ledgerTask } = setUp()
      await begin("ses_1", FIRST)
      expect(ledgerTask("ts-add002").labels).toEqual(["conversation"])
      await expand("ses_1", "new Teach it CRLF")
      expect(ledgerTask("ts-add003").labels).toEqual([])
    },
  )

  test(promised("task.D2", "the task of a first message is none where the ledger fails"), async () => {
    const { begin, bound, script } = setUp()
    script.readable = false
    expect(await begin("ses_1", FIRST)).toBe(false)
    expect(bound).toEqual([])
  })
})

describe("the task of a message that was undone", () => {
  const made = { taskID, role: "worker", hasRoleHeading: false, origin: "message", boundAt: "", isMade: true } as const
  const UNDONE = { undone: [made], redone: [] }
  const REDONE = { undone: [], redone: [made] }

  test(promised("words.A3", "the task of an undone message is canceled, and as it was after the redo"), async () => {
    const { followUndo, ledgerTask, told } = setUp()
    for (const status of ["open", "in_progress"]) {
      ledgerTask(taskID).status = status
      await followUndo("ses_1", UNDONE)
      expect(ledgerTask(taskID).status).toBe("canceled")
      await followUndo("ses_1", REDONE)
      expect(ledgerTask(taskID).status).toBe(status)
    }
    expect(told.slice(0, 2)).toEqual([`task ${taskID} is canceled`, `task ${taskID}`])
  })

  test(
    promised("queue.A4", "an undone message's task is the conversation's again after the redo, which starts it"),
    async () => {
      const { followUndo, ledgerTask, calls } = setUp()
      Object.assign(ledgerTask(taskID), { status: "in_progress", labels: ["conversation"] })
      await followUndo("ses_1", UNDONE)
      await followUndo("ses_1", REDONE)
      expect(calls.slice(-2)).toEqual([`start ${taskID}`, `label ${taskID} conversation`])
    },
  )

  test(
    promised(
      "words.A3",
      "the task of a message that was undone stays where it is done, another has it, or Baton did not make it",
    ),
    async () => {
      const done = setUp()
      done.ledgerTask(taskID).status = "done"
      const shared = setUp()
      shared.others.push("ses_2")
      const named = setUp()
      for (const { followUndo } of [done, shared]) await followUndo("ses_1", UNDONE)
      const { isMade: _, ...step } = made
      await named.followUndo("ses_1", { undone: [step], redone: [] })
      for (const { calls, told } of [done, shared, named]) {
        expect(calls.filter((call) => !call.startsWith("show"))).toEqual([])
        expect(told).toEqual([])
      }
    },
  )

  test(
    promised(
      "words.A3",
      "the task of a message that was undone gets the title of the next message, unless another has it by now",
    ),
    async () => {
      const { begin, followUndo, ledgerTask, bound, others } = setUp()
      await followUndo("ses_1", UNDONE)
      expect(await begin("ses_1", FIRST, taskID)).toBe(true)
      const title = "Teach the parser CRLF line ends, without touching the lexer"
      expect(ledgerTask(taskID)).toMatchObject({ title, description: LONG, status: "open" })
      others.push("ses_2")
      expect(await begin("ses_1", { ...FIRST, messageID: "msg_2" }, taskID)).toBe(true)
      expect(bound).toEqual([`${taskID} msg_1`, "ts-add002 msg_2"])
    },
  )
})

describe("the tools for an agent without a shell", () => {
  test(
    promised("task.D3", "the tools for an agent without a shell show the task and log to it through the outbox"),
    async () => {
      const { show, log, logged, script } = setUp()
      expect(await show("ses_1")).toContain(`${taskID}: ${taskID} (open)`)
      for (let again = 0; again < 2; again++) expect(await log("ses_1", "Checkpoint")).toBe(`Logged to ${taskID}`)
      // Each line has an id, so that the same words are two records.
      const message = expect.stringMatching(/^Checkpoint \[[0-9a-f]{8}\]$/)
      expect(logged).toEqual([1, 2].map(() => ({ kind: "log", taskID, message })))
      expect(logged[0]).not.toEqual(logged[1])
      script.readable = false
      expect(await show("ses_1")).toContain("The ledger does not answer: scripted.")
    },
  )
})
