import type { Part, UserMessage } from "@opencode-ai/sdk"
import { expect, test } from "vitest"
import { createFileAttachment } from "../../../.opencode/baton/handoff/attach-files.ts"
import { renderMarker } from "../../../.opencode/baton/handoff/draft.ts"
import type { LoadedFiles } from "../../../.opencode/baton/handoff/files.ts"
import type { HandoffRecord } from "../../../.opencode/baton/handoff/records.ts"
import type { FileReference } from "../../../.opencode/baton/handoff/references.ts"
import { createDeferred } from "../../../.opencode/baton/host/async.ts"
import type { OutboxEntry } from "../../../.opencode/baton/ledger/outbox-store.ts"
import { promised } from "../../requirements.ts"
import { createFakeSessions, createRecordedLog, handoffRecord, textPart, userMessage } from "../../support/unit.ts"

const FROM = "ses_old"
const DRAFT = `${renderMarker(FROM)}\n\n@a.ts\n\nGo on.`

const record = (arrivedIn: string[] = [], change: Partial<HandoffRecord> = {}): HandoffRecord =>
  handoffRecord(FROM, arrivedIn, { draft: DRAFT, ...change })

const loadAll = async (references: readonly FileReference[]): Promise<LoadedFiles> => ({
  blocks: references.map(({ path }) => ({ header: `header ${path}`, content: `content ${path}` })),
  references,
  leftOut: [],
})

const NO_TITLE = "New session - 2026-01-02T00:00:00.000Z"

const setUp = ({ records = [] as HandoffRecord[], load = loadAll, add = async () => {}, title = NO_TITLE } = {}) => {
  const stored = new Map(records.map((each) => [each.id, each]))
  const added: OutboxEntry[] = []
  const sessions = createFakeSessions(new Map([["ses_new", { info: { title } }]]))
  const titleNow = async () => {
    const found = await sessions.info("ses_new")
    return found.kind === "ok" ? found.value.title : found.reason
  }
  const attachment = createFileAttachment({
    sessions,
    records: { list: async () => [...stored.values()], write: async (each) => stored.set(each.id, each).size > 0 },
    loadFiles: load,
    outbox: { add: (entry) => add().then(() => void added.push(entry)) },
    log: createRecordedLog(),
    now: () => new Date("2026-01-02T00:00:00.000Z"),
  })
  const receive = async (text: string, sessionID = "ses_new", id = "msg_new"): Promise<Part[]> => {
    const parts: Part[] = [{ ...textPart(text), id: "prt_0000000000aaXXXXXXXXXXXXXX" }]
    const info = { ...userMessage(parts).info, id, sessionID } as UserMessage
    const change = await attachment.attachFiles(info, parts)
    change?.()
    return parts
  }
  return { receive, stored, added, attachment, titleNow }
}

const synthetic = (parts: Part[]): string[] =>
  parts.flatMap((part) => (part.type === "text" && part.synthetic ? [part.text] : []))

test(promised("handoff.C4", "files come as synthetic parts behind the message's text, in order"), async () => {
  const { receive } = setUp({ records: [record()] })
  const parts = await receive(`${DRAFT} And @b.ts.`)
  expect(synthetic(parts)).toEqual(["header a.ts", "content a.ts", "header b.ts", "content b.ts"])
  const ids = parts.map(({ id }) => id)
  expect(ids).toEqual(ids.toSorted())
  expect(new Set(ids).size).toBe(5)
  for (const id of ids.slice(1)) expect(id).toMatch(/^prt_[0-9a-f]{12}[0-9A-Za-z]{14}$/)
  expect(parts.every(({ messageID, sessionID }) => messageID !== "" && sessionID !== "")).toBe(true)
})

test(promised("handoff.B5", "the handoff is recorded with the session in which it arrived, once"), async () => {
  const { receive, stored, added } = setUp({ records: [record([], { taskID: "ts-b54507" })] })
  await receive(DRAFT)
  await receive(DRAFT)
  expect(stored.get(FROM)?.arrivals.map(({ sessionID }) => sessionID)).toEqual(["ses_new"])
  expect(added).toEqual([{ kind: "log", taskID: "ts-b54507", message: "Handoff to ses_new: Go on" }])
})

test(promised("handoff.B5", "the message waits for the record, but not for ever"), async () => {
  const records = [record([], { taskID: "ts-b54507" })]
  const slow = setUp({ records, add: () => new Promise((resolve) => setTimeout(resolve, 50)) })
  await slow.receive(DRAFT)
  expect(slow.added).toHaveLength(1)
  const hanging = setUp({ records, add: () => new Promise(() => {}) })
  expect(synthetic(await hanging.receive(DRAFT))).toHaveLength(2)
  expect(hanging.stored.get(FROM)?.arrivals).toHaveLength(1)
})

test(promised("handoff.B5", "of a session's handoffs the one whose draft was sent is recorded"), async () => {
  const drafts = ["First.", "Second."].map((prompt) => `${renderMarker(FROM)}\n\n@a.ts\n\n${prompt}`)
  const { receive, stored } = setUp({ records: drafts.map((draft) => record([], { id: draft, draft })) })
  const arrivals = () => [...stored.values()].map((each) => each.arrivals.length)
  await receive(`Typed before. ${drafts[0]} And more.`)
  expect(arrivals()).toEqual([1, 0])
  await receive(drafts[0] ?? "", "ses_newer")
  expect(arrivals()).toEqual([2, 0])
  await receive(`${renderMarker(FROM)}\n\n@a.ts\n\nEdited.`, "ses_newest")
  expect(arrivals()).toEqual([2, 1])
})

test.each([
  ["a quotation of one that arrived elsewhere", "ses_other", `What is this?\n${DRAFT}`, 0],
  ["the same again, as it is, in another session", "ses_other", DRAFT, 2],
  ["one that was taken back, again in its own session", "ses_new", `Typed before. ${DRAFT}`, 2],
])(promised("handoff.C4", "%s brings its files or none"), async (_what, arrivedIn, text, files) => {
  const { receive } = setUp({ records: [record([arrivedIn])] })
  expect(synthetic(await receive(text))).toHaveLength(files)
})

test(promised("handoff.C4", "files that failed to come are tried again with the next message, once"), async () => {
  let fails = true
  const load: typeof loadAll = (files) => (fails ? Promise.reject(new Error("the disk is away")) : loadAll(files))
  const { receive, attachment } = setUp({ load })
  await expect(receive(DRAFT)).rejects.toThrow("the disk is away")
  expect(attachment.isPending("ses_new")).toBe(true)
  fails = false
  expect(synthetic(await receive("Go on.", "ses_new", "msg_2"))).toEqual(["header a.ts", "content a.ts"])
  expect(attachment.isPending("ses_new")).toBe(false)
  expect(synthetic(await receive("And on.", "ses_new", "msg_3"))).toEqual([])
})

test(
  promised(
    "handoff.C4",
    "files that are late for their message stand in its requests, and come with the next message to stay",
  ),
  async () => {
    const arrived = createDeferred<void>()
    const { attachment, receive } = setUp({ load: (files) => arrived.promise.then(() => loadAll(files)) })
    const message = userMessage([{ ...textPart(DRAFT), id: "prt_0000000000aaXXXXXXXXXXXXXX" }])
    const info = { ...message.info, id: "msg_new", sessionID: "ses_new" } as UserMessage
    const request = { info, parts: [...message.parts] }
    // OpenCode goes on without the change.
    void attachment.attachFiles(info, message.parts)
    expect(await attachment.attachLate("ses_new", [request])).toBeUndefined()
    arrived.resolve()
    ;(await attachment.attachLate("ses_new", [request]))?.()
    expect(synthetic(request.parts)).toEqual(["header a.ts", "content a.ts"])
    expect(synthetic(await receive("Go on.", "ses_new", "msg_2"))).toEqual(["header a.ts", "content a.ts"])
    expect(await attachment.attachLate("ses_new", [request])).toBeUndefined()
  },
)

test(promised("handoff.C5", "a deleted session's pending files are forgotten"), async () => {
  const { receive, attachment } = setUp({ load: async () => Promise.reject(new Error("away")) })
  await expect(receive(DRAFT)).rejects.toThrow()
  attachment.forget("ses_new")
  expect(attachment.isPending("ses_new")).toBe(false)
})

test(promised("people.A2", "a file that was left out of the draft is named, unless it was added since"), async () => {
  const leftOut = ["a.ts", "big.sql"].map((path) => ({ path, reason: "it is larger than 2 MB" }))
  const { receive } = setUp({ records: [record([], { leftOut })] })
  const texts = synthetic(await receive(DRAFT))
  expect(texts.at(-1)).toMatch(/^Not loaded with this message;.*\n- "big.sql": it is larger than 2 MB$/)
})

test(promised(["handoff.C3", "handoff.E2"], "what was not loaded is listed for the model"), async () => {
  const leftOut = [{ path: "a\nb.bin", reason: "it is binary" }]
  const { receive } = setUp({ load: async (references) => ({ ...(await loadAll(references)), leftOut }) })
  const texts = synthetic(await receive(DRAFT))
  expect(texts).toHaveLength(3)
  expect(texts[2]).toContain('- "a\\nb.bin": it is binary')
})

test(
  promised("people.A2a", "a session without a title gets the handoff's, also where its record is gone"),
  async () => {
    const { receive, titleNow } = setUp({ records: [record()] })
    await receive(DRAFT)
    expect(await titleNow()).toBe("Handoff: Go on")
    const forgotten = setUp()
    await forgotten.receive(DRAFT)
    expect(await forgotten.titleNow()).toBe("Handoff: go on")
  },
)

test(
  promised("people.A2a", "a title that is there stays, and so does that of a session that only quotes one"),
  async () => {
    const named = setUp({ records: [record()], title: "Mine" })
    await named.receive(DRAFT)
    expect(await named.titleNow()).toBe("Mine")
    const quoting = setUp({ records: [record()] })
    await quoting.receive(`\`\`\`\n${DRAFT}\n\`\`\``)
    expect(await quoting.titleNow()).toBe(NO_TITLE)
  },
)
