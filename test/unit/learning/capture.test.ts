import { readdirSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import type { Part } from "@opencode-ai/sdk"
import { describe, expect, test, vi } from "vitest"
import type { StoredMessage } from "../../../.opencode/baton/host/sessions.ts"
import { createShownMessages } from "../../../.opencode/baton/host/shown-messages.ts"
import type { Notices } from "../../../.opencode/baton/host/tui.ts"
import { createCapture, workAround } from "../../../.opencode/baton/learning/capture.ts"
import { createLearningIndex } from "../../../.opencode/baton/learning/known.ts"
import { createSessionRecords } from "../../../.opencode/baton/learning/records.ts"
import { contradicts, learningKey } from "../../../.opencode/baton/learning/words.ts"
import { renderDetail } from "../../../.opencode/baton/ledger/learnings.ts"
import type { LedgerLearning } from "../../../.opencode/baton/ledger/ledger.ts"
import type { OutboxEntry } from "../../../.opencode/baton/ledger/outbox-store.ts"
import { promised } from "../../requirements.ts"
import * as stored from "../../support/opencode/stored-messages.ts"
import {
  createFakeSessions,
  createRecordedLog,
  type FakeSession,
  openTestState,
  temporaryFolder,
} from "../../support/unit.ts"

const { assistantMessage, completedTool, textPart, toolPart, userMessage, userSays } = stored

const SESSION = "ses_1"

const assistant = (id: string, ...parts: Part[]): StoredMessage => ({ ...assistantMessage("", {}, { id }), parts })
const used = (tool: string, input: Record<string, unknown>) => toolPart(tool, completedTool("", "", input))

describe("what a sentence is called", () => {
  test(
    promised(
      "learning.B1",
      "what a sentence is called is the same in another spelling, and another with a no in another place",
    ),
    () => {
      const key = learningKey("No, use tabs instead of spaces!")
      expect(learningKey("no use TABS instead of spaces")).toBe(key)
      expect(learningKey("Please use tabs, instead of spaces.")).toBe(key)
      expect(learningKey("No, use spaces instead of tabs.")).not.toBe(key)
      for (const [one, other] of [
        ["Never push tags", "Push tags"],
        ["Nutze immer Semikolons in TypeScript.", "Nein, nutze nie Semikolons in TypeScript."],
        ["Siempre usa comillas simples.", "Nunca usa comillas simples."],
        ["Utilise toujours des points-virgules.", "N'utilise jamais des points-virgules."],
        ["提交前运行测试", "提交前不要运行测试"],
      ] as const)
        expect(learningKey(one)).not.toBe(learningKey(other))
      expect(learningKey("不对，提交前运行测试")).toBe(learningKey("提交前运行测试"))
    },
  )

  test.each([
    ["Actually, use spaces instead of tabs.", "No, use tabs instead of spaces.", true],
    ["Use spaces, not tabs.", "I prefer tabs over spaces.", true],
    ["No, use semicolons.", "Don't use semicolons.", true],
    ["Never use semicolons.", "Always use semicolons.", true],
    ["Indent with 2 spaces.", "Indent with 4 spaces.", true],
    ["No, use pnpm.", "No, use tabs instead of spaces.", false],
    ["Use tabs instead of spaces in Go.", "No, use tabs instead of spaces.", false],
    ["Never use tabs in YAML files.", "Use spaces, not tabs.", false],
    ["Never run the tests against production.", "Always run the tests.", false],
    ["Always mock the database in the billing module.", "Never mock the database.", false],
    ["Don't mock the database, use the test container.", "Use the database for sessions.", false],
  ])(promised("learning.C2", "the sentence %s contradicts %s: %s"), (newer, older, expected) => {
    expect(contradicts(newer, older)).toBe(expected)
  })
})

describe("what was around a message", () => {
  const before = [
    userSays("Write it.", "msg_1"),
    assistant("msg_2", used("edit", { filePath: "/p/src/a.ts" }), used("bash", { command: "npm test" })),
    userMessage([textPart("No, use tabs."), textPart("Always do as the file says.", { synthetic: true })], "msg_3"),
  ]
  const worked = assistant("msg_4", used("write", { filePath: "/p/src/b.ts" }))

  test(
    promised(["learning.A2", "learning.A1"], "what was around a message is what the agent did, and its files"),
    () => {
      const done = { answered: "changed src/a.ts; ran npm test", files: ["src/b.ts", "src/a.ts"], confirmed: true }
      expect(workAround([...before, worked], "msg_3", "/p")).toEqual(done)
    },
  )

  test(promised("learning.A2", "a learning is confirmed when the work changed and the user does not object"), () => {
    const confirmed = (...after: StoredMessage[]) => workAround([...before, ...after], "msg_3", "/p")?.confirmed
    expect(confirmed()).toBe(false)
    expect(confirmed(assistant("msg_4", textPart("I see.")))).toBe(false)
    expect(confirmed(worked, userSays("Thanks.", "msg_5"))).toBe(true)
    expect(confirmed(worked, userSays("That's wrong.", "msg_5"))).toBe(false)
  })

  test(promised("learning.B2", "what was around a message tells no secret that a command held"), () => {
    const secret = `curl -H "Authorization: Bearer abcdefghijklmnop1234"`
    const messages = [assistant("msg_1", used("bash", { command: secret })), ...before.slice(2)]
    expect(workAround(messages, "msg_3", "/p")?.answered).toBe("")
  })
})

/** A project's learnings, and a ledger that has none. @param taskID `""`: the session has no task */
const open = (
  folder = temporaryFolder(),
  messages: StoredMessage[] = [],
  agents: readonly LedgerLearning[] = [],
  taskID = "ts-abc123",
) => {
  const log = createRecordedLog()
  const state = openTestState(folder)
  const records = createSessionRecords({ state, log, pid: 1 })
  const entries: OutboxEntry[] = []
  const outbox = { add: async (entry: OutboxEntry) => void entries.push(entry), pending: async () => entries }
  const project = { name: "p", folder, onlyFolder: folder }
  const readLearnings = vi.fn(async () => ({ kind: "found", learnings: agents }) as const)
  const ledger = { readLearnings }
  const database = join(folder, "prog.db")
  const readSigner = () => undefined
  const waitingRecords = records.waiting
  const known = createLearningIndex({ project, ledger, outbox, waitingRecords, state, readSigner, log, database })
  const session: FakeSession = { messages, info: {} }
  const opencode = new Map([[SESSION, session]])
  const sessions = createFakeSessions(opencode)
  const findShown = createShownMessages(sessions)
  const findTask = async () => (taskID === "" ? undefined : taskID)
  const told: string[] = []
  const notices: Notices = ({ title, message }) => void told.push(`${title}: ${message}`)
  const capture = createCapture({
    ...{ records, known, outbox, sessions, findShown },
    ...{ project, findTask, notices, root: "/p", log },
  })
  let minute = 0
  const look = (text: string, messageID: string, sessionID = SESSION) =>
    capture.capture({ sessionID, messageID, text, at: new Date(Date.UTC(2026, 0, 1, 0, minute++)) })
  const store = async () => {
    await capture.addContext(SESSION)
    await capture.enqueue(SESSION)
  }
  /** Follows an undo or a redo of the user's. */
  const follow = async () => {
    expect(await capture.followUndo(SESSION)).toBe(true)
    await store()
  }
  const undo = async (messageID: string) => {
    session.info = { revert: { messageID } }
    await follow()
  }
  const redo = async () => {
    session.info = {}
    await follow()
  }
  const parts = {
    entries,
    told,
    log,
    known,
    records,
    folder,
    state,
    database,
    readLearnings,
    opencode,
    capture,
    sessions,
  }
  return { look, store, undo, redo, follow, ...parts }
}

test(promised("learning.B1", "a damaged copy of the ledger's answer is not believed"), async () => {
  const { folder, state, database, known, log, readLearnings } = open()
  writeFileSync(database, "x")
  const { mtimeMs, size } = statSync(database)
  const copy = { version: 1, stamp: `${folder} ${mtimeMs}-${size} `, learnings: [{ key: "k" }] }
  await state.write(state.path("learning", "known.json"), JSON.stringify(copy))
  expect(await known.read()).toEqual([])
  expect(readLearnings).toHaveBeenCalledOnce()
  expect(log.lines.map(({ message: text }) => text)).toEqual(["the copy of the learnings is unusable"])
})

describe("the capture", () => {
  test(
    promised(["learning.B1", "notices.A1"], "the capture keeps at once what is taught, stores it once"),
    async () => {
      const first = open()
      await first.look("No, use tabs.", "msg_1")
      await first.look("No, use tabs.", "msg_1")
      expect((await first.known.read()).map(({ sentence }) => sentence)).toEqual(["No, use tabs."])
      const restarted = open(first.folder)
      expect((await restarted.records.waiting()).map(({ sessionID }) => sessionID)).toEqual([SESSION])
      await restarted.store()
      await restarted.store()
      expect(restarted.entries).toMatchObject([
        { kind: "learning", summary: "No, use tabs.", concepts: ["correction"], source: { messageID: "msg_1" } },
      ])
      expect(restarted.told).toEqual(["learned: “No, use tabs.”"])
      expect(await open(first.folder).records.waiting()).toEqual([])
    },
  )

  test(promised("learning.B3", "the capture adds the concepts of agents that a sentence names, no other"), async () => {
    const said = { detail: "", files: [], createdAt: "2026-11-20T12:00:00Z", status: "active" }
    const note = { ...said, id: "lrn-1a2b3c", summary: "It is generated.", concepts: ["charmap", "build"] }
    const { look, store, entries, database } = open(temporaryFolder(), [], [note])
    writeFileSync(database, "x")
    await look("No, use tabs in the charMap.", "msg_1")
    await store()
    expect(entries).toMatchObject([{ concepts: ["correction", "charmap"] }])
  })

  test(
    promised("words.B2", "a learning is the user's, too, while the ledger has it and not yet its signature"),
    async () => {
      const folder = temporaryFolder()
      const sources = [{ at: "2026-01-01T00:00:00.000Z", sessionID: SESSION, messageID: "msg_1" }]
      const detail = renderDetail({ key: "k", folder, type: "correction", confirmed: false, times: 1, sources })
      const added = { id: "lrn-1a2b3c", summary: "No, use tabs.", detail, concepts: ["correction"], files: [] }
      const agents = [{ ...added, createdAt: "2026-11-20T12:00:00Z", status: "active" }]
      const { look, store, known, database } = open(folder, [], agents)
      writeFileSync(database, "x")
      expect(await known.read(true), "an agent wrote it").toMatchObject([{ by: "agent" }])
      await look("No, use tabs.", "msg_1")
      await store()
      expect(await known.read()).toMatchObject([{ by: "user", id: "lrn-1a2b3c", sentence: "No, use tabs.", times: 1 }])
    },
  )

  test(
    promised("learning.A4", "the capture tells the user of a rule, and of a remark when it is said again"),
    async () => {
      const { look, store, entries, told } = open()
      await look("That's wrong, the tilde has to stay.", "msg_1")
      await store()
      expect(told).toEqual([])
      await look("That's wrong, the tilde has to stay!", "msg_2")
      await store()
      expect(entries).toHaveLength(2)
      expect(told).toHaveLength(1)
    },
  )

  test(
    promised("learning.B1", "the capture keeps what another process of the same session learned meanwhile"),
    async () => {
      const first = open()
      await first.look("No, use tabs.", "msg_1")
      await first.store()
      const second = open(first.folder)
      await second.look("No, use pnpm.", "msg_2")
      await first.look("No, use semicolons.", "msg_3")
      const { sayings } = await first.records.read(SESSION)
      const states = sayings.map(({ sentence, state }) => `${state} ${sentence}`)
      expect(states).toEqual(["stored No, use tabs.", "waiting No, use pnpm.", "waiting No, use semicolons."])
    },
  )

  test(promised("learning.B1", "the capture keeps in memory what the disk refuses"), async () => {
    const folder = temporaryFolder()
    writeFileSync(join(folder, ".opencode"), "in the way")
    const { look, store, entries, records } = open(folder)
    await look("No, use tabs.", "msg_1")
    expect(await records.waiting()).toHaveLength(1)
    await store()
    await store()
    expect(entries).toHaveLength(1)
  })

  test(promised("learning.B1", "a record that is forgotten while it changes stays forgotten"), async () => {
    const { look, records, folder } = open()
    await look("No, use tabs.", "msg_1")
    void records.update(SESSION, (record) => ({ ...record, sayings: [] }))
    await records.forget(SESSION)
    expect(await records.all()).toEqual([])
    expect(readdirSync(join(folder, ".opencode/state/learning/sessions"))).toEqual([])
  })

  test(
    promised("learning.B1", "the capture takes ten different things from a session, and each repetition"),
    async () => {
      const { look, store, entries, log } = open()
      for (let at = 0; at < 14; at++) await look(`No, use module${at} instead.`, `msg_${at}`)
      await look("No, use module3 instead!", "msg_again")
      await store()
      expect(entries).toHaveLength(11)
      expect(log.lines.filter(({ message: text }) => text.includes("learning limit reached"))).toHaveLength(4)
    },
  )

  test(
    promised("people.B3", "the eleventh learning of a day takes the place of the newest of the least type"),
    async () => {
      const { look, store, entries, known, log } = open()
      for (let at = 0; at < 9; at++) await look(`Note that module${at} is generated by the build.`, `msg_${at}`)
      await look("Always use tabs in the parser.", "msg_9")
      await store()
      await look("No, use the lexer instead of the parser.", "msg_10")
      await store()
      const active = (await known.read()).filter(({ status }) => status === "active").map(({ sentence }) => sentence)
      expect(active).toContain("No, use the lexer instead of the parser.")
      expect(active).toContain("Always use tabs in the parser.")
      expect(active).not.toContain("Note that module8 is generated by the build.")
      expect(active).toHaveLength(10)
      expect(entries.filter(({ kind }) => kind === "withdraw")).toMatchObject([{ messageID: "msg_8" }])
      expect(log.lines.filter(({ message: text }) => text.includes("makes way"))).toHaveLength(1)
      await look("Note that module9 is generated by the build.", "msg_11")
      await store()
      expect(
        entries.filter(({ kind }) => kind === "withdraw"),
        "a lesser one displaces nothing",
      ).toHaveLength(1)
    },
  )

  test(promised("people.B3", "the day after ten learnings has room for ten more"), async () => {
    const { look, store, entries, capture } = open()
    for (let at = 0; at < 12; at++) await look(`No, use module${at} instead.`, `msg_${at}`)
    const next = new Date(Date.UTC(2026, 0, 2))
    const said = { sessionID: SESSION, messageID: "msg_next", text: "No, use pnpm instead of npm." }
    await capture.capture({ ...said, at: next })
    await store()
    expect(entries.map((entry) => "summary" in entry && entry.summary)).toContain(said.text)
    expect(entries).toHaveLength(11)
  })

  test(promised("people.B2", "what is limited to the task is not learned in a session that has one"), async () => {
    const sentences = ["No, only use the standard library.", "Antworte immer nur mit dem Diff."]
    const withTask = open()
    for (const [at, text] of sentences.entries()) await withTask.look(text, `msg_${at}`)
    await withTask.look("No, use the standard library.", "msg_9")
    await withTask.store()
    expect(withTask.entries).toMatchObject([{ summary: "No, use the standard library." }])
    const without = open(temporaryFolder(), [], [], "")
    for (const [at, text] of sentences.entries()) await without.look(text, `msg_${at}`)
    await without.store()
    expect(without.entries).toMatchObject(sentences.map((summary) => ({ summary })))
  })

  test(promised("learning.B2", "the capture neither stores nor logs a secret"), async () => {
    const { look, store, entries, log } = open()
    await look("No, use the password hunter2, i.e. password=hunter2.", "msg_1")
    await store()
    expect(entries).toEqual([])
    expect(JSON.stringify(log.lines)).not.toContain("hunter2")
    expect(log.lines).toMatchObject([{ level: "warn", extra: { rule: "named-secret" } }])
  })

  test(promised("learning.B2", "the capture learns nothing from a message with a private key"), async () => {
    const { look, store, entries, log } = open()
    const header = "Authorization: Bearer abcdefghijklmnop1234"
    await look(`No, use tabs.\n${header}\n-----BEGIN RSA PRIVATE KEY-----`, "msg_1")
    await store()
    expect(entries).toEqual([])
    expect(log.lines.map(({ extra }) => extra?.rule)).toContain("private-key")
  })

  test(
    promised("learning.C2", "the capture retires what a newer correction contradicts, with a log line"),
    async () => {
      const { look, store, entries, log, known } = open()
      await look("No, use tabs instead of spaces.", "msg_1")
      await store()
      await look("Actually, use spaces instead of tabs.", "msg_2")
      await store()
      expect(entries.map(({ kind }) => kind)).toEqual(["learning", "learning", "retire"])
      expect(entries[2]).toMatchObject({ as: "superseded", key: learningKey("No, use tabs instead of spaces.") })
      expect(log.lines.filter(({ message: text }) => text.includes("contradicts"))).toHaveLength(1)
      const active = (await known.read()).filter(({ status }) => status === "active")
      expect(active.map(({ sentence }) => sentence)).toEqual(["Actually, use spaces instead of tabs."])
    },
  )

  test(promised("learning.A2", "the capture takes a confirmation back when the user objects to the work"), async () => {
    const messages = [userSays("No, use tabs.", "msg_1"), assistant("msg_2", used("write", { filePath: "/p/a.ts" }))]
    const { look, store, entries } = open(temporaryFolder(), messages)
    await look("No, use tabs.", "msg_1")
    await store()
    messages.push(userSays("That's wrong.", "msg_3"))
    await look("That's wrong.", "msg_3")
    await store()
    expect(entries).toMatchObject([
      { confirmed: true, files: ["a.ts"], source: { taskID: "ts-abc123" } },
      { confirmed: false, source: { messageID: "msg_1" } },
    ])
  })

  describe("a message that was undone", () => {
    const said = ["msg_1", "msg_2"].map((id) => userSays("No, use tabs.", id))
    const kindsOf = (entries: readonly OutboxEntry[]) => entries.map((entry) => entry.kind)

    test(
      promised("words.A3b", "the capture stores nothing of an undone message, and what it said when it is redone"),
      async () => {
        const { look, undo, redo, entries, known, records } = open(temporaryFolder(), [...said])
        await look("No, use tabs.", "msg_1")
        await undo("msg_1")
        expect(kindsOf(entries)).toEqual(["withdraw"])
        expect(await known.read()).toEqual([])
        expect(await records.waiting()).toEqual([])
        await undo("msg_1")
        expect(entries, "once").toHaveLength(1)
        await redo()
        expect(entries.slice(1)).toMatchObject([{ kind: "learning", source: { messageID: "msg_1" } }])
        const active = (await known.read()).filter(({ status }) => status === "active")
        expect(active).toMatchObject([{ sentence: "No, use tabs.", times: 1 }])
      },
    )

    test(
      promised(
        "words.A3b",
        "the capture takes back what was stored of an undone message, and counts what is said again once",
      ),
      async () => {
        const { look, store, undo, redo, entries, known, opencode } = open(temporaryFolder(), [...said])
        await look("No, use tabs.", "msg_1")
        await store()
        expect(await known.read()).toMatchObject([{ status: "active" }])
        await undo("msg_1")
        const key = learningKey("No, use tabs.")
        expect(entries.slice(1)).toMatchObject([{ kind: "withdraw", key, messageID: "msg_1" }])
        expect(await known.read()).toMatchObject([{ status: "replaced" }])
        opencode.set(SESSION, { messages: said.slice(1) })
        await look("No, use tabs.", "msg_2")
        await redo()
        expect(entries.slice(2)).toMatchObject([{ kind: "learning", source: { messageID: "msg_2" } }])
        const active = (await known.read()).filter(({ status }) => status === "active")
        expect(active).toMatchObject([{ times: 1, messageIDs: ["msg_2"] }])
      },
    )

    test(
      promised(
        "words.A3b",
        "the capture learns an undone message neither with its session's end nor by an objection to it",
      ),
      async () => {
        const { look, store, undo, follow, entries, opencode } = open(temporaryFolder(), [...said])
        await look("No, use tabs.", "msg_1")
        await store()
        await undo("msg_1")
        await look("That's wrong.", "msg_2")
        opencode.delete(SESSION)
        await follow()
        expect(kindsOf(entries)).toEqual(["learning", "withdraw"])
      },
    )

    test(
      promised("words.A3b", "the capture takes nothing of an undone message back while OpenCode does not answer"),
      async () => {
        const { look, entries, records, capture, sessions } = open(temporaryFolder(), [])
        await look("No, use tabs.", "msg_1")
        sessions.info = async () => ({ kind: "failed", reason: "no answer" })
        expect(await capture.followUndo(SESSION)).toBe(false)
        expect(entries).toEqual([])
        expect(await records.waiting()).toHaveLength(1)
      },
    )
  })
})
