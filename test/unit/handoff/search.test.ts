import { describe, expect, test } from "vitest"
import { searchHandoffs, searchLedger, searchSessions } from "../../../.opencode/baton/handoff/search.ts"
import type { SessionMessages } from "../../../.opencode/baton/host/opencode-database.ts"
import type { StoredMessage } from "../../../.opencode/baton/host/sessions.ts"
import type { LedgerText } from "../../../.opencode/baton/ledger/ledger-texts.ts"
import { promised } from "../../requirements.ts"
import { assistantMessage, handoffRecord, userSays } from "../../support/unit.ts"

const query = { words: ["CRLF"], typed: "crlf", limit: 20 }

/** A session's messages at these times, given the newest first. @param read told of each that is read */
const session = (
  id: string,
  updatedAt: number,
  dated: readonly (readonly [number, StoredMessage])[],
  read: (id: string) => void = () => {},
): SessionMessages => ({
  session: { id, title: `Title of ${id}`, updatedAt, isChild: false, hasTool: true },
  *messages() {
    for (const [at, message] of dated) {
      read(message.info.id)
      yield { at, message }
    }
  },
})

describe("search in sessions", () => {
  test(
    promised("people.E1", "search in sessions gives the newest first, at most three of one, with whose words they are"),
    () => {
      const many = [5, 4, 3, 2].map((at) => [at, userSays(`CRLF ${at}`, `msg_${at}`)] as const)
      const other = [[6, assistantMessage("About crlf.", {}, { id: "msg_6" })]] as const
      const hits = searchSessions([session("ses_a", 9, many), session("ses_b", 6, other)], query, "titles")
      expect(hits.map(({ id, date }) => [id, Date.parse(date)])).toEqual([
        ["ses_b", 6],
        ["ses_a", 5],
        ["ses_a", 4],
        ["ses_a", 3],
      ])
      expect(hits[0]).toEqual({
        where: "session",
        id: "ses_b",
        title: "Title of ses_b",
        date: "1970-01-01T00:00:00.006Z",
        message: "msg_6",
        by: "assistant",
        excerpt: "About crlf.",
        read: 'read_session {"sessionID":"ses_b","words":"crlf","any":true}',
      })
    },
  )

  test(promised("people.E1", "search in sessions reads no session that can have nothing newer"), () => {
    const read: string[] = []
    const note = (id: string) => read.push(id)
    const of = (id: string, at: number) => session(id, at, [[at, userSays("crlf", `msg_${id}`)]], note)
    const hits = searchSessions([of("ses_a", 9), of("ses_b", 8), of("ses_c", 7)], { ...query, limit: 2 }, "titles")
    expect(hits.map(({ id }) => id)).toEqual(["ses_a", "ses_b"])
    expect(read).toEqual(["msg_ses_a", "msg_ses_b"])
  })

  test(
    promised("people.E1", "search in sessions finds neither a heading of the transcript nor what a plugin added"),
    () => {
      const added = { ...userSays("plain"), parts: [{ type: "text", text: "crlf", synthetic: true }] } as never
      const one = session("ses_a", 2, [
        [2, added],
        [1, userSays("plain")],
      ])
      expect(searchSessions([one], query, "titles")).toEqual([])
      expect(searchSessions([one], { ...query, words: ["USER"] }, "titles")).toEqual([])
    },
  )
})

const text = (id: string, at: number, part: "task" | "log", words: string): LedgerText => {
  return { id, title: "Teach", status: "open", part, at, text: words }
}

test(promised("people.E1", "tasks and their logs are one list, the newest first"), () => {
  const tasks = [text("ts-b", 7, "task", "crlf"), text("ts-a", 3, "task", "lf")]
  const logs = [text("ts-a", 8, "log", "CRLF ended"), text("ts-a", 2, "log", "CRLF begun")]
  const hits = searchLedger([tasks, logs], query)
  expect(hits.map(({ id, excerpt, read }) => [id, excerpt, read])).toEqual([
    ["ts-a", "CRLF ended", "prog show ts-a"],
    ["ts-b", "crlf", "prog show ts-b"],
    ["ts-a", "CRLF begun", "prog show ts-a"],
  ])
})

test(promised("people.E1", "handoffs are found by their draft"), () => {
  const of = (id: string, draft: string) => handoffRecord("ses_a", ["ses_b"], { id, draft, goal: `goal ${id}` })
  const [hit, ...others] = searchHandoffs([of("1", "about LF"), of("2", "about CRLF")], query)
  expect(others).toEqual([])
  expect(hit).toMatchObject({ where: "handoff", id: "2", title: "goal 2", from: "ses_a", to: ["ses_b"] })
  expect(hit?.read).toBe("baton handoffs --draft 2")
})
