import { expect, test } from "vitest"
import { messagePages } from "../../../.opencode/baton/host/sessions.ts"
import { promised } from "../../requirements.ts"
import { createFakeSessions } from "../../support/opencode/fake-sessions.ts"
import { textPart, userMessage } from "../../support/opencode/stored-messages.ts"

const messages = (count: number) =>
  Array.from({ length: count }, (_, index) => userMessage([textPart("x")], `msg_${index}`))

const read = async (count: number, cursors: boolean, isOver: () => boolean = () => false) => {
  const sessions = createFakeSessions(new Map([["ses_1", { messages: messages(count) }]]), { cursors })
  const pages: string[][] = []
  let isOldest = false
  for await (const answer of messagePages(sessions, "ses_1", { size: 10, isOver })) {
    if (answer.kind === "failed") throw new Error(answer.reason)
    pages.push(answer.value.messages.map(({ info }) => info.id))
    isOldest = answer.value.isOldest
  }
  return { pages, isOldest }
}

test.each([
  [0, true],
  [9, true],
  [10, true],
  [35, true],
  [0, false],
  [9, false],
  [10, false],
  [35, false],
  [1_234, false],
])(promised("handoff.D3", "%i messages are read once each, to the oldest (cursors: %s)"), async (count, cursors) => {
  const { pages, isOldest } = await read(count, cursors)
  expect(pages.toReversed().flat()).toEqual(messages(count).map(({ info }) => info.id))
  expect(isOldest).toBe(true)
})

test(promised("handoff.D3", "reading ends when the time is over, and not at the oldest then"), async () => {
  let asked = 0
  expect(await read(35, true, () => asked++ > 1)).toMatchObject({
    pages: [{ length: 10 }, { length: 10 }],
    isOldest: false,
  })
})

test(promised("handoff.D1", "a session that is gone is one failure"), async () => {
  const sessions = createFakeSessions(new Map())
  const kinds: string[] = []
  for await (const { kind } of messagePages(sessions, "ses_gone", { size: 10, isOver: () => false })) kinds.push(kind)
  expect(kinds).toEqual(["failed"])
})
