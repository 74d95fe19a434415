import { describe, expect, test } from "vitest"
import { createSessions, messagePages } from "../../../.opencode/baton/host/sessions.ts"
import { promised } from "../../requirements.ts"
import { createFakeSessions, userSays } from "../../support/unit.ts"

type Client = Parameters<typeof createSessions>[0]

const clientWith = (messages: () => unknown): Client =>
  ({ session: { messages, get: messages, todo: messages } }) as unknown as Client
const page = [{ info: { id: "msg_1", role: "user" }, parts: [{ type: "text", text: "hi" }] }]

describe("the session client", () => {
  test("a page of messages comes with the cursor of the older one", async () => {
    const response = new Response(null, { headers: { "X-Next-Cursor": "older" } })
    const sessions = createSessions(clientWith(async () => ({ data: page, response })))
    expect(await sessions.messages("ses_1", 1)).toEqual({ kind: "ok", value: { messages: page, older: "older" } })
  })

  const fail = () => {
    throw new Error("broken")
  }
  const message = { info: { id: "m", role: "user" } }
  test.each([
    ["an error", async () => ({ error: { name: "NotFound" } }), /NotFound/],
    ["a rejection", () => Promise.reject(new Error("gone")), /gone/],
    ["a throw", fail, /broken/],
    ["nothing", async () => undefined, /unknown shape/],
    ["an object instead of a list", async () => ({ data: { items: [] } }), /unknown shape/],
    ["messages without parts", async () => ({ data: [message] }), /unknown shape/],
    ["parts that are no objects", async () => ({ data: [{ ...message, parts: [1] }] }), /unknown shape/],
    ["no answer in time", () => new Promise(() => {}), /did not answer within 20 ms/],
  ])(promised("faults.F1", "%s is a failure with its reason, never a throw"), async (_what, answer, reason) => {
    const sessions = createSessions(clientWith(answer), { deadlineMs: 20 })
    const failed = { kind: "failed", reason: expect.stringMatching(reason) }
    expect(await sessions.messages("ses_1", 1)).toMatchObject(failed)
    expect(await sessions.parent("ses_1")).toMatchObject({ kind: "failed" })
    expect(await sessions.todos("ses_1")).toMatchObject({ kind: "failed" })
  })
})

const messages = (count: number) => Array.from({ length: count }, (_, index) => userSays("x", `msg_${index}`))

const read = async (count: number, cursors: boolean, shouldStop: () => boolean = () => false) => {
  const sessions = createFakeSessions(new Map([["ses_1", { messages: messages(count) }]]), { cursors })
  const pages: string[][] = []
  let isOldest = false
  for await (const answer of messagePages(sessions, "ses_1", { size: 10, shouldStop })) {
    if (answer.kind === "failed") throw new Error(answer.reason)
    pages.push(answer.value.messages.map(({ info }) => info.id))
    isOldest = answer.value.isOldest
  }
  return { pages, isOldest }
}

const COUNTS = [true, false].flatMap((cursors) => [0, 9, 10, 35, 1_234].map((count) => [count, cursors] as const))

test.each(COUNTS)(promised("handoff.D3", "%i messages are read to the end (cursors: %s)"), async (count, cursors) => {
  const { pages, isOldest } = await read(count, cursors)
  expect(pages.toReversed().flat()).toEqual(messages(count).map(({ info }) => info.id))
  expect(isOldest).toBe(true)
})

test(promised("handoff.D3", "reading ends when the time is over, and not at the oldest then"), async () => {
  let asked = 0
  const pages = [{ length: 10 }, { length: 10 }]
  expect(await read(35, true, () => asked++ > 1)).toMatchObject({ pages, isOldest: false })
})

test(promised("handoff.D1", "a session that is gone is one failure"), async () => {
  const sessions = createFakeSessions(new Map())
  const kinds: string[] = []
  for await (const { kind } of messagePages(sessions, "ses_gone", { size: 10, shouldStop: () => false }))
    kinds.push(kind)
  expect(kinds).toEqual(["failed"])
})
