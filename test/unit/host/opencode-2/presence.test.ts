import { expect, test } from "vitest"
import { createPresence } from "../../../../.opencode/baton/host/opencode-2/presence.ts"
import { promised } from "../../../requirements.ts"

const user = (id: string) => ({ id, type: "user" })
const compaction = (id: string) => ({ id, type: "compaction" })
const event = (type: string, data: object) => ({ type, data: { sessionID: "ses_1", ...data } })

test(promised("v2.B9", "a message is gone that is not shown since the compaction, and was not just sent"), () => {
  const presence = createPresence()
  const isGone = (id: string, entries: unknown[]) => presence.isGone("ses_1", id, entries)
  expect(isGone("msg_2", [user("msg_1"), user("msg_2")])).toBe(false)
  expect(isGone("msg_2", [user("msg_1")])).toBe(true)
  expect(isGone("msg_1", [compaction("msg_2"), user("msg_3")])).toBe(false)
  expect(isGone("msg_4", [compaction("msg_2"), user("msg_3")])).toBe(true)
  presence.sent("ses_1", "msg_4")
  expect(isGone("msg_4", [compaction("msg_2"), user("msg_3")])).toBe(false)
  expect(isGone("msg_4", [user("msg_4")])).toBe(false)
  expect(isGone("msg_4", [user("msg_3")])).toBe(true)
})

test(promised("v2.B9", "a copy in a fork from before its compaction is there"), () => {
  const isGone = (id: string) => createPresence().isGone("ses_1", id, [compaction("msg_0a_132")])
  expect(["msg_0a_4", "msg_0a_200"].map(isGone)).toEqual([false, true])
})

test(promised("v2.B9", "a message that was taken out of the inbox is gone, and a strange event is nothing"), () => {
  const presence = createPresence()
  presence.sent("ses_1", "msg_4")
  for (const strange of [undefined, "x", {}, event("session.inbox.cancelled", {})]) presence.observe(strange)
  expect(presence.isGone("ses_1", "msg_4", [])).toBe(false)
  presence.observe(event("session.inbox.cancelled", { inboxID: "msg_4" }))
  expect(presence.isGone("ses_1", "msg_4", [])).toBe(true)
})
