import { expect, test } from "vitest"
import { type ExportedMessage, multiplySession } from "../../scripts/benchmarks/seed-session.ts"

const message = (role: string, parts: number): ExportedMessage => ({
  info: { id: `msg_${role}`, sessionID: "ses_template", role, time: { created: 1, completed: 2 } },
  parts: Array.from({ length: parts }, (_, index) => ({
    id: `prt_${index}`,
    sessionID: "ses_template",
    messageID: `msg_${role}`,
  })),
})

const TEMPLATE = {
  info: { id: "ses_template", projectID: "project" },
  messages: [message("user", 1), message("assistant", 3), message("assistant", 2)],
}

test("repeats the messages up to the count, each with ids of its own that sort by time", () => {
  const { info, messages } = multiplySession(TEMPLATE, { count: 5_000, untilMs: 1_700_000_000_000, index: 3 })
  expect(messages).toHaveLength(5_000)
  expect(info).toMatchObject({ projectID: "project" })
  const ids = messages.map((each) => each.info.id)
  expect(new Set(ids).size).toBe(5_000)
  expect(ids.toSorted()).toEqual(ids)
  const parts = messages.flatMap((each) => each.parts.map((part) => part.id))
  expect(new Set(parts).size).toBe(parts.length)
})

test("keeps every reference inside the new session", () => {
  const { info, messages } = multiplySession(TEMPLATE, { count: 7, untilMs: 1_700_000_000_000, index: 0 })
  let user = ""
  for (const each of messages) {
    if (each.info.role === "user") user = each.info.id
    else expect(each.info.parentID).toBe(user)
    expect(each.info.sessionID).toBe(info.id)
    for (const part of each.parts) expect(part).toMatchObject({ sessionID: info.id, messageID: each.info.id })
  }
})

test("gives sessions of one project ids that do not meet", () => {
  const at = { count: 100, untilMs: 1_700_000_000_000 }
  const ids = [0, 1].flatMap((index) => {
    const { info, messages } = multiplySession(TEMPLATE, { ...at, index })
    return [info.id, ...messages.flatMap((each) => [each.info.id, ...each.parts.map((part) => part.id)])]
  })
  expect(new Set(ids).size).toBe(ids.length)
})
