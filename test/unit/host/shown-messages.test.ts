import { describe, expect, test } from "vitest"
import { createSessions, type Result, type SessionInfo, type Sessions } from "../../../.opencode/baton/host/sessions.ts"
import { createShownMessages, isOlder } from "../../../.opencode/baton/host/shown-messages.ts"
import { promised } from "../../requirements.ts"
import { createFakeSessions, userSays } from "../../support/unit.ts"

const SESSION = "ses_1"
const IDS = ["msg_3", "msg_1", "msg_2"]

const show = async (
  revert?: SessionInfo["revert"],
  stored: readonly string[] = IDS,
  changes: Partial<Sessions> = {},
) => {
  const messages = stored.map((id) => userSays("x", id))
  const sessions = createFakeSessions(new Map([[SESSION, { info: revert ? { revert } : {}, messages }]]))
  const shown = await createShownMessages({ ...sessions, ...changes })(SESSION, IDS)
  return shown && [...shown].toSorted()
}

describe("the messages that OpenCode shows", () => {
  test.each<[string, SessionInfo["revert"], readonly string[], readonly string[]]>([
    ["all without a revert", undefined, IDS, ["msg_1", "msg_2", "msg_3"]],
    ["those before the message that was undone", { messageID: "msg_2" }, IDS, ["msg_1"]],
    ["those before an answer that was undone", { messageID: "msg_25" }, IDS, ["msg_1", "msg_2"]],
    ["the one of which a part was undone", { messageID: "msg_2", partID: "prt_1" }, IDS, ["msg_1", "msg_2"]],
    ["those that were not deleted", undefined, ["msg_1"], ["msg_1"]],
    ["those that were neither deleted nor undone", { messageID: "msg_2" }, ["msg_1", "msg_2"], ["msg_1"]],
    ["those that came after others were deleted", undefined, ["msg_1", "msg_3"], ["msg_1", "msg_3"]],
    ["none when all were deleted", undefined, [], []],
  ])("the shown messages are %s", async (_which, revert, stored, expected) => {
    expect(await show(revert, stored)).toEqual(expected)
  })

  test(promised("v2.B9", "copies in a fork are in the order of their numbers"), async () => {
    const order = ["msg_0a_4", "msg_0a_99", "msg_0a_100", "msg_0a_100z", "msg_0a_132", "msg_0b", "msg_0b_7"]
    for (const [at, id] of order.entries())
      expect(order.filter((other) => isOlder(id, other))).toEqual(order.slice(at + 1))
    const revert = { messageID: "msg_0a_100" }
    const messages = order.map((id) => userSays("x", id))
    const sessions = createFakeSessions(new Map([[SESSION, { info: { revert }, messages }]]))
    expect(await createShownMessages(sessions)(SESSION, order)).toEqual(new Set(["msg_0a_4", "msg_0a_99"]))
  })

  test("the shown messages are all of them when the session is gone", async () => {
    const shown = await createShownMessages(createFakeSessions(new Map()))(SESSION, IDS)
    expect(shown).toEqual(new Set(IDS))
  })

  const failed: Result<never> = { kind: "failed", reason: "no answer in time" }
  test.each<[string, Partial<Sessions>]>([
    ["the session", { info: async () => failed }],
    ["a message", { message: async () => failed }],
  ])("the shown messages are unknown when OpenCode does not answer for %s", async (_what, changes) => {
    expect(await show(undefined, IDS, changes)).toBeUndefined()
  })
})

describe("a message that does not exist", () => {
  const ask = (error: unknown, status: number) => {
    const message = async () => ({ error, response: new Response(null, { status }) })
    const client = { session: { message } } as unknown as Parameters<typeof createSessions>[0]
    return createSessions(client).message(SESSION, "msg_1")
  }

  test.each([
    ["404", { name: "NotFoundError", data: { message: "Message not found: msg_1" } }, 404],
    ["500, as 1.2.15 does", { name: "UnknownError", data: { message: "Error: Message not found: msg_1\n at x" } }, 500],
  ])("a message is missing when OpenCode answers %s", async (_how, error, status) => {
    expect(await ask(error, status)).toMatchObject({ kind: "failed", missing: true })
  })

  test("a message is not missing when OpenCode fails", async () => {
    const answer = await ask({ name: "UnknownError", data: { message: "Error: the disk is full" } }, 500)
    expect(answer).toMatchObject({ kind: "failed", reason: expect.stringContaining("disk is full") })
    expect(answer).not.toHaveProperty("missing")
  })
})
