import { describe, expect, test } from "vitest"
import { renderMarker } from "../../../.opencode/baton/handoff/draft.ts"
import { createReadSession, parseSearch, type ReadRequest } from "../../../.opencode/baton/handoff/read-session.ts"
import { createProcessRunner } from "../../../.opencode/baton/host/process.ts"
import type { StoredMessage } from "../../../.opencode/baton/host/sessions.ts"
import { promised } from "../../requirements.ts"
import { createFakeSessions, type FakeSession } from "../../support/opencode/fake-sessions.ts"
import { assistantMessage, createRecordedLog, handoffRecord, userSays } from "../../support/unit.ts"

const conversation = (count: number) =>
  Array.from({ length: count }, (_, index) =>
    index % 2 === 0
      ? userSays(`Question ${index}.`, `msg_${index}`)
      : assistantMessage(`Answer ${index}.`, {}, { id: `msg_${index}` }),
  )

const run = createProcessRunner({ shell: undefined })
const READER = "ses_reader"
const OLD = "ses_old"

const setUp = ({
  messages = conversation(5),
  records = [handoffRecord(OLD, [READER])],
  others = {} as Record<string, FakeSession>,
  cursors = true,
  /** A busy machine takes its time to start a program. */
  patience = 30,
} = {}) => {
  const sessions = new Map(Object.entries({ [READER]: { messages: [] }, [OLD]: { messages }, ...others }))
  const fake = createFakeSessions(sessions, { cursors })
  const read = createReadSession({
    isSameTask: async () => false,
    sessions: fake,
    records: async () => records,
    run: (argv, options) => run(argv, { ...options, deadlineMs: options.deadlineMs * patience }),
    log: createRecordedLog(),
    startDeadline: () => () => false,
  })
  const ask = async (request: Partial<ReadRequest> = {}) => read(READER, { sessionID: OLD, ...request })
  return { ask, fake }
}

describe("read_session", () => {
  test(
    promised("people.E1", "words find the messages that have all of them, in any order and on any line"),
    async () => {
      const messages = [
        userSays("Keep CRLF.\nThen the lexer.", "msg_1"),
        assistantMessage("The Lexer is slow.", {}, { id: "msg_2" }),
        userSays("lexer: crlf, please", "msg_3"),
      ]
      const { output } = await setUp({ messages }).ask({ words: "lexer  CRLF" })
      expect(output).toContain("(msg_1)\n> Keep CRLF.")
      expect(output).toContain("(msg_3)\n> lexer: crlf, please")
      expect(output).not.toContain("msg_2")
      expect((await setUp({ messages }).ask({ words: "user" })).output).toContain("(0 matches in the newest 3 messages")
      expect((await setUp({ messages }).ask({ words: " \n" })).output).toContain("is refused: it has no word")
    },
  )

  test(promised("handoff.D1", "exactly as many messages as the limit are no truncation"), async () => {
    expect((await setUp().ask({ limit: 5 })).output).toContain("(End of session - 5 messages)")
    const { output } = await setUp().ask({ limit: 4 })
    expect(output).not.toContain("Question 0.")
    expect(output).toContain("(Showing 4 most recent messages. Use a higher 'limit' to see more.")
  })

  test.each([
    [0, 100],
    [-3, 1],
    [9_999, 500],
    [Number.NaN, 100],
    [2.9, 2],
  ])(promised("handoff.D1", "a limit of %s counts as %s"), async (limit, counted) => {
    const { ask, fake } = setUp({ messages: conversation(900) })
    await ask({ limit })
    expect(fake.calls.map((call) => call.limit)).toContain(counted + 1)
  })

  test.each([
    ["ses_unknown", "there is no session with this id"],
    ["nonsense", "this is no session id"],
    ["../../etc/passwd", "this is no session id"],
    ["ses_foreign", "it belongs to another project"],
    ["ses_stranger", "it is not in this session's chain"],
  ])(promised(["handoff.D1", "handoff.D2"], "%s is not read: %s"), async (sessionID, reason) => {
    const others = { ses_foreign: { info: { projectID: "q" } }, ses_stranger: { messages: conversation(1) } }
    const { output } = await setUp({ others }).ask({ sessionID })
    expect(output).toContain(`Could not read session ${sessionID}: ${reason}`)
  })

  test(promised("handoff.D2", "a project outside git is told by its folder"), async () => {
    const [projectID, directory] = ["global", "/b"]
    const others = { [READER]: { info: { projectID } }, ses_else: { info: { projectID, directory } } }
    const { output } = await setUp({ others }).ask({ sessionID: "ses_else", any: true })
    expect(output).toContain("it belongs to another project")
  })

  const MARKER = userSays(renderMarker(OLD), "msg_marker")
  const MID = handoffRecord("ses_mid", [READER])
  const began = (...messages: StoredMessage[]) => ({ records: [], others: { [READER]: { messages } } })

  test.each<[string, boolean, Parameters<typeof setUp>[0]]>([
    ["a chain of several handoffs", true, { others: { ses_mid: {} }, records: [handoffRecord(OLD, ["ses_mid"]), MID] }],
    ["the other end of a chain", true, { records: [handoffRecord(READER, [OLD])] }],
    ["a subagent of the chain", true, { others: { [OLD]: { info: { parentID: "ses_mid" } } }, records: [MID] }],
    ["a chain whose record is lost, by the marker", true, began(MARKER)],
    ["such a chain, however far back the first message is", true, began(MARKER, ...conversation(250))],
    ["a draft that is quoted later, which makes no chain", false, began(...conversation(1), MARKER)],
  ])(promised(["handoff.B5", "handoff.E2"], "read_session reads %s: %s"), async (_what, isRead, options) => {
    const said = isRead ? "(End of session" : "it is not in this session's chain"
    expect((await setUp(options).ask()).output).toContain(said)
  })

  test.each([true, false])(
    promised("handoff.D3", "read_session pages back with before (cursors: %s)"),
    async (cursors) => {
      const { ask } = setUp({ messages: conversation(1_000), cursors })
      const { output } = await ask({ before: "msg_500", limit: 2 })
      expect(output).toContain("Question 498.")
      expect(output).toContain("Answer 499.")
      expect(output).not.toContain("Question 500.")
      expect(output).toContain('before: "msg_498"')
      expect((await ask({ before: "msg_2" })).output).toContain("(Start of session - 2 messages before msg_2)")
      expect((await ask({ before: "msg_none" })).output).toContain("it has no message msg_none")
    },
  )

  test.each([true, false])(promised("handoff.D3", "search shows lines around (cursors: %s)"), async (cursors) => {
    const messages = conversation(1_200)
    messages[10] = userSays("one\ntwo\nthe Needle here\nfour\nfive\nsix", "msg_10")
    const { ask } = setUp({ messages, cursors })
    const { output } = await ask({ search: "needle" })
    expect(output).toContain("## User (msg_10)\n  one\n  two\n> the Needle here\n  four\n  five")
    expect(output).not.toContain("six")
    expect(output).toContain("(1 match in the newest 1200 messages, which is the whole session.")
    expect((await ask({ search: "/n[e]{2}dle/i" })).output).toContain("> the Needle here")
    expect((await ask({ search: "/needle/" })).output).toContain("(0 matches")
  })

  test(promised("handoff.D4", "as much is read of 10,000 messages as of 200, and nothing twice"), async () => {
    const readFor = async (count: number, request: Partial<ReadRequest>) => {
      const { ask, fake } = setUp({ messages: conversation(count) })
      await ask(request)
      return fake.calls.map(({ limit }) => limit)
    }
    for (const count of [200, 10_000]) {
      expect(await readFor(count, {}), "the newest").toEqual([101])
      expect(await readFor(count, { before: `msg_${count - 10}`, limit: 20 }), "those before a message").toEqual([200])
    }
    expect(await readFor(10_000, { search: "nowhere" }), "all, once").toEqual(Array.from({ length: 100 }, () => 100))
  })

  test(promised("handoff.D3", "a search stays below OpenCode's limit, and shows no half character"), async () => {
    const long = (index: number) => userSays(`x${"😀".repeat(300)} needle\n`.repeat(5), `msg_${index}`)
    const messages = Array.from({ length: 40 }, (_, index) => long(index))
    const { output } = await setUp({ messages }).ask({ search: "needle" })
    expect(Buffer.byteLength(output)).toBeLessThan(50_000)
    expect(output.isWellFormed()).toBe(true)
    expect(output).toContain("msg_39")
    expect(output).toContain("older ones were not searched")
  })
})

test(promised(["handoff.D3", "handoff.E2"], "a broken search pattern is refused, a plain text is none"), () => {
  const reason = expect.stringContaining("no regular expression")
  expect(parseSearch("/(/")).toMatchObject({ kind: "invalid", reason })
  expect(parseSearch(`/${"a".repeat(501)}/`)).toMatchObject({ kind: "invalid" })
  const plain = parseSearch("a/b(c")
  expect(plain.kind === "text" && plain.find("xxA/B(C")).toBe(2)
})

describe("a pattern", () => {
  const LINE = `${"a".repeat(1_990)}!`
  /** Counts the turns of this thread while a search runs. */
  const search = async (pattern: string) => {
    const { ask } = setUp({ messages: [userSays(LINE, "msg_0")], patience: 1 })
    let turns = 0
    const timer = setInterval(() => turns++, 1)
    const { output } = await ask({ search: pattern })
    clearInterval(timer)
    return { output, turns }
  }

  test.each(["/.*.*.*.*=/", "/a*a*a*a*a*b/", "/([^)]+)+\\(/", "/(a?){40}b/", "/(a+)+$/", "/(a|a)*b/", "/(.*)*\\1=/"])(
    promised(["handoff.E2", "trust.B1"], "a pattern that may never end holds up neither this thread nor the tool: %s"),
    async (pattern) => {
      const { output, turns } = await search(pattern)
      expect(output).toMatch(/the pattern took longer than 1000 ms|0 matches/)
      expect(turns).toBeGreaterThan(0)
    },
  )
})
