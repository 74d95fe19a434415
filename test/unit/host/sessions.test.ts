import { describe, expect, test } from "vitest"
import { createSessions } from "../../../.opencode/baton/host/sessions.ts"
import { promised } from "../../requirements.ts"

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

  test.each([
    ["an error", async () => ({ error: { name: "NotFound" } }), /NotFound/],
    ["a rejection", () => Promise.reject(new Error("gone")), /gone/],
    [
      "a throw",
      () => {
        throw new Error("broken")
      },
      /broken/,
    ],
    ["nothing", async () => undefined, /unknown shape/],
    ["an object instead of a list", async () => ({ data: { items: [] } }), /unknown shape/],
    ["messages without parts", async () => ({ data: [{ info: { id: "m", role: "user" } }] }), /unknown shape/],
    [
      "parts that are no objects",
      async () => ({ data: [{ info: { id: "m", role: "user" }, parts: [1] }] }),
      /unknown shape/,
    ],
    ["no answer in time", () => new Promise(() => {}), /did not answer within 20 ms/],
  ])(promised("faults.F1", "%s is a failure with its reason, never a throw"), async (_what, answer, reason) => {
    const sessions = createSessions(clientWith(answer), { deadlineMs: 20 })
    for (const call of [sessions.messages("ses_1", 1), sessions.parent("ses_1"), sessions.todos("ses_1")]) {
      const result = await call
      expect(result.kind).toBe("failed")
    }
    expect(await sessions.messages("ses_1", 1)).toMatchObject({ kind: "failed", reason: expect.stringMatching(reason) })
  })
})
