import type { Part, UserMessage } from "@opencode-ai/sdk"
import { describe, expect, test } from "vitest"
import { renderMarker } from "../../../.opencode/baton/handoff/draft.ts"
import type { LoadedFiles } from "../../../.opencode/baton/handoff/files.ts"
import { createInjection } from "../../../.opencode/baton/handoff/injection.ts"
import type { HandoffRecord } from "../../../.opencode/baton/handoff/records.ts"
import type { FileReference } from "../../../.opencode/baton/handoff/references.ts"
import type { OutboxEntry } from "../../../.opencode/baton/ledger/outbox-store.ts"
import { promised } from "../../requirements.ts"
import { createFakeSessions, type FakeSession } from "../../support/opencode/fake-sessions.ts"
import { textPart, userMessage } from "../../support/opencode/stored-messages.ts"
import { createRecordedLog } from "../../support/recorded-log.ts"

const FROM = "ses_old"
const DRAFT = `${renderMarker(FROM)}\n\n@a.ts\n\nGo on.`

const record = (id: string, arrivals: string[] = [], taskID?: string): HandoffRecord => ({
  version: 1,
  id,
  createdAt: "2026-01-01T00:00:00.000Z",
  from: FROM,
  goal: "Go\non",
  draft: DRAFT,
  files: ["a.ts"],
  leftOut: [],
  taskID,
  arrivals: arrivals.map((sessionID) => ({ sessionID, at: "2026-01-01T00:00:00.000Z" })),
})

const setUp = ({
  records = [],
  sessions = new Map<string, FakeSession>([["ses_new", {}]]),
  load = async (references: readonly FileReference[]): Promise<LoadedFiles> => ({
    blocks: references.map(({ path }) => ({ header: `header ${path}`, content: `content ${path}` })),
    references,
    leftOut: [],
  }),
  add = async () => {},
}: {
  add?: (entry: OutboxEntry) => Promise<void>
  records?: HandoffRecord[]
  sessions?: Map<string, FakeSession>
  load?: (references: readonly FileReference[]) => Promise<LoadedFiles>
} = {}) => {
  const stored = new Map(records.map((each) => [each.id, each]))
  const added: OutboxEntry[] = []
  const injection = createInjection({
    sessions: createFakeSessions(sessions),
    records: {
      list: async () => [...stored.values()],
      write: async (each) => {
        stored.set(each.id, each)
        return true
      },
    },
    loadFiles: load,
    outbox: {
      add: async (entry) => {
        await add(entry)
        added.push(entry)
      },
    },
    log: createRecordedLog(),
    now: () => new Date("2026-01-02T00:00:00.000Z"),
  })
  const receive = async (text: string, sessionID = "ses_new", id = "msg_new"): Promise<Part[]> => {
    const parts: Part[] = [{ ...textPart(text), id: "prt_0000000000aaXXXXXXXXXXXXXX" }]
    const info = { ...userMessage(parts).info, id, sessionID } as UserMessage
    const change = await injection.userMessage(info, parts)
    change?.()
    return parts
  }
  return { receive, stored, added, injection }
}

const synthetic = (parts: Part[]): string[] =>
  parts.flatMap((part) => (part.type === "text" && part.synthetic ? [part.text] : []))

describe("the arrival of a draft", () => {
  test(
    promised("handoff.C4", "files come as synthetic parts of the same message, behind its text, in order"),
    async () => {
      const { receive } = setUp({ records: [record("1")] })
      const parts = await receive(`${DRAFT} And @b.ts.`)
      expect(synthetic(parts)).toEqual(["header a.ts", "content a.ts", "header b.ts", "content b.ts"])
      const ids = parts.map(({ id }) => id)
      expect(ids).toEqual(ids.toSorted())
      expect(new Set(ids).size).toBe(5)
      for (const id of ids.slice(1)) expect(id).toMatch(/^prt_[0-9a-f]{12}[0-9A-Za-z]{14}$/)
      expect(parts.every(({ messageID, sessionID }) => messageID !== "" && sessionID !== "")).toBe(true)
    },
  )

  test(promised("handoff.B5", "the handoff is recorded with the session in which it arrived, once"), async () => {
    const { receive, stored, added } = setUp({ records: [record("1", [], "ts-b54507")] })
    await receive(DRAFT)
    await receive(DRAFT)
    expect(stored.get("1")?.arrivals.map(({ sessionID }) => sessionID)).toEqual(["ses_new"])
    expect(added).toEqual([{ kind: "log", taskID: "ts-b54507", message: "Handoff to ses_new: Go on" }])
  })

  test(
    promised("handoff.B5", "the message waits for the record, since `run` may end right behind it; not for ever"),
    async () => {
      const slow = setUp({
        records: [record("1", [], "ts-b54507")],
        add: () => new Promise((resolve) => setTimeout(resolve, 50)),
      })
      await slow.receive(DRAFT)
      expect(slow.added).toHaveLength(1)
      const hanging = setUp({ records: [record("1", [], "ts-b54507")], add: () => new Promise(() => {}) })
      expect(synthetic(await hanging.receive(DRAFT))).toHaveLength(2)
      expect(hanging.stored.get("1")?.arrivals).toHaveLength(1)
    },
  )

  test(
    promised("handoff.B5", "of several handoffs of one session the one whose draft was sent is recorded"),
    async () => {
      const drafts = ["First.", "Second."].map((prompt) => `${renderMarker(FROM)}\n\n@a.ts\n\n${prompt}`)
      const records = drafts.map((draft, index) => ({ ...record(String(index)), draft }))
      const { receive, stored } = setUp({ records })
      await receive(`Typed before. ${drafts[0]} And more.`)
      expect([...stored.values()].map(({ arrivals }) => arrivals.length)).toEqual([1, 0])
      await receive(drafts[0] ?? "", "ses_newer")
      expect([...stored.values()].map(({ arrivals }) => arrivals.length)).toEqual([2, 0])
      await receive(`${renderMarker(FROM)}\n\n@a.ts\n\nEdited.`, "ses_newest")
      expect([...stored.values()].map(({ arrivals }) => arrivals.length)).toEqual([2, 1])
    },
  )

  test(promised("handoff.C4", "a message that is not the session's first brings no files"), async () => {
    const sessions = new Map([["ses_new", { messages: [userMessage([textPart("Hello")], "msg_old")] }]])
    const { receive } = setUp({ sessions, records: [record("1")] })
    expect(synthetic(await receive(DRAFT))).toEqual([])
  })

  test(promised("handoff.C4", "a quotation of a draft that arrived elsewhere brings no files"), async () => {
    const { receive } = setUp({ records: [record("1", ["ses_other"])] })
    expect(synthetic(await receive(`What is this?\n${DRAFT}`))).toEqual([])
    expect(synthetic(await receive(`> ${DRAFT}`))).toEqual([])
    expect(synthetic(await receive(`## User\n${DRAFT}`))).toEqual([])
    expect(synthetic(await receive(`\`\`\`\n${DRAFT}\n\`\`\``))).toEqual([])
  })

  test(
    promised("handoff.C4", "the same draft, sent as it is in another session, brings its files there too"),
    async () => {
      const { receive } = setUp({ records: [record("1", ["ses_other"])] })
      expect(synthetic(await receive(DRAFT))).toHaveLength(2)
    },
  )

  test(
    promised("handoff.C4", "what was taken back and sent again in its own session brings its files again"),
    async () => {
      const { receive } = setUp({ records: [record("1", ["ses_new"])] })
      expect(synthetic(await receive(`Typed before. ${DRAFT}`))).toHaveLength(2)
    },
  )

  test(promised(["handoff.C4", "handoff.E2"], "a lost record costs the files of no draft"), async () => {
    const { receive, added } = setUp()
    expect(synthetic(await receive(DRAFT))).toHaveLength(2)
    expect(added).toEqual([])
  })

  test(
    promised("handoff.C4", "files that failed to come are tried again with the session's next message, once"),
    async () => {
      let fails = true
      const { receive, injection } = setUp({
        load: async (references) => {
          if (fails) throw new Error("the disk is away")
          return { blocks: [{ header: "h", content: "c" }], references, leftOut: [] }
        },
      })
      await expect(receive(DRAFT)).rejects.toThrow("the disk is away")
      expect(injection.isPending("ses_new")).toBe(true)
      fails = false
      expect(synthetic(await receive("Go on.", "ses_new", "msg_2"))).toEqual(["h", "c"])
      expect(injection.isPending("ses_new")).toBe(false)
      expect(synthetic(await receive("And on.", "ses_new", "msg_3"))).toEqual([])
    },
  )

  test(promised("handoff.C5", "a deleted session's pending files are forgotten"), async () => {
    const { receive, injection } = setUp({ load: async () => Promise.reject(new Error("away")) })
    await expect(receive(DRAFT)).rejects.toThrow()
    injection.forget("ses_new")
    expect(injection.isPending("ses_new")).toBe(false)
  })

  test(
    promised(["handoff.C3", "handoff.E2"], "what was not loaded is listed for the model, and costs no other file"),
    async () => {
      const { receive } = setUp({
        load: async (references) => ({
          blocks: [{ header: "h", content: "c" }],
          references,
          leftOut: [{ path: "a\nb.bin", reason: "it is binary" }],
        }),
      })
      const texts = synthetic(await receive(DRAFT))
      expect(texts).toHaveLength(3)
      expect(texts[2]).toContain('- "a\\nb.bin": it is binary')
    },
  )
})
