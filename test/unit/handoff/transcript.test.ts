import type { FilePart, Part, ToolState } from "@opencode-ai/sdk"
import fc from "fast-check"
import { describe, expect, test } from "vitest"
import type { ToolDetail } from "../../../.opencode/baton/handoff/transcript.ts"
import * as transcripts from "../../../.opencode/baton/handoff/transcript.ts"
import type { StoredMessage } from "../../../.opencode/baton/host/sessions.ts"
import { promised } from "../../requirements.ts"
import { forAll } from "../../support/for-all.ts"
import * as stored from "../../support/opencode/stored-messages.ts"

const { assistantMessage, asksToCompact, completedTool, IDS, textPart, toolPart, userMessage, userSays } = stored
const { MAX_TRANSCRIPT_BYTES, MAX_TRANSCRIPT_LINES, renderMessage, renderTranscript } = transcripts

const reasoningPart = (text: string): Part => ({ ...IDS, type: "reasoning", text, time: { start: 1 } })

const filePart = (file: Partial<Pick<FilePart, "filename" | "url" | "mime">>): Part => ({
  ...IDS,
  type: "file",
  mime: "text/plain",
  url: "file:///p/a.ts",
  ...file,
})

/** OpenCode's limit for a tool's output. */
const OUTPUT_BYTES = 50 * 1024
const OUTPUT_LINES = 2_000

const assistant = (parts: Part[], id = "msg_a") =>
  ({ ...assistantMessage(undefined, {}, { id }), parts }) satisfies StoredMessage
const render = (messages: readonly StoredMessage[], page: Partial<transcripts.TranscriptPage> = {}): string =>
  renderTranscript({ messages, hasOlder: false, detail: "titles", limit: 100, maxLimit: 500, ...page })
const session = (count: number, text = (index: number) => `message ${index}`): StoredMessage[] =>
  Array.from({ length: count }, (_, index) => userSays(text(index), `msg_${index}`))
const expectToFit = (text: string): void => {
  expect(Buffer.byteLength(text)).toBeLessThan(OUTPUT_BYTES)
  expect(text.split("\n").length).toBeLessThan(OUTPUT_LINES)
}

describe("a transcript", () => {
  test(
    promised("handoff.D1", "a transcript has the sections, attachments, tools and the footer of the document"),
    () => {
      const asked = userMessage([textPart("Fix the parser.\n"), filePart({ filename: "parser.ts" })])
      const tools = [toolPart("read", completedTool("src/parser.ts")), toolPart("bash", completedTool(""))]
      expect(render([asked, assistant([textPart("On it."), ...tools])])).toBe(
        "## User\nFix the parser.\n[Attached: parser.ts]\n\n## Assistant\nOn it.\n[Tool: read] src/parser.ts\n[Tool: bash]\n\n(End of session - 2 messages)",
      )
    },
  )

  test(promised("words.B3", "a transcript says which messages are another agent's"), () => {
    const envelope = '<c2c event="message" from="ada">\nUse tabs.\n</c2c>'
    const text = render([userSays(envelope), assistant([textPart(envelope)]), userSays("Do.", "msg_2")])
    expect(text).toContain(`## Another agent\n${envelope}\n\n## Assistant\n${envelope}\n\n## User\nDo.`)
  })

  const MORE = "Use a higher 'limit' to see more."
  const OLDER = '(Older ones: read_session with before: "msg_0".)'

  test.each<[string, Partial<transcripts.TranscriptPage>, string]>([
    ["has older ones", { limit: 2 }, `(Showing 2 most recent messages. ${MORE})\n${OLDER}`],
    ["has older ones, at the highest limit", { limit: 500 }, `(Showing 2 most recent messages.)\n${OLDER}`],
    ["lies further back", { before: "msg_9", hasOlder: false }, "(Start of session - 2 messages before msg_9)"],
    ["lies back, has older", { before: "msg_9", limit: 2 }, `(Showing 2 messages before msg_9. ${MORE})\n${OLDER}`],
  ])(
    promised(["handoff.D1", "handoff.D3"], "a transcript that %s says so, and how to see more"),
    (_what, page, footer) => {
      const text = render(session(2), { hasOlder: true, ...page })
      expect(text).toBe(`## User\nmessage 0\n\n## User\nmessage 1\n\n${footer}`)
    },
  )

  test(promised("handoff.D1", "a transcript counts the messages that have nothing to show"), () => {
    const silent = assistant([reasoningPart("hm")], "msg_silent")
    expect(render([silent, userSays("a"), silent])).toBe("## User\na\n\n(End of session - 3 messages)")
    expect(render([silent])).toBe("(End of session - 1 messages)")
    expect(render([])).toBe("(End of session - 0 messages)")
    expect(render([silent, userSays("a")], { hasOlder: true })).toContain(
      "(Showing 2 most recent messages. Use a higher 'limit' to see more.)\n(Older ones: read_session with before: \"msg_silent\".)",
    )
  })
})

describe("a message", () => {
  const failedTool = (error: string): ToolState => ({ status: "error", input: {}, error, time: { start: 1, end: 2 } })
  const shown = (message: StoredMessage, detail: ToolDetail = "titles") => renderMessage(message, detail)

  test(promised("handoff.D1", "a message shows neither reasoning nor synthetic or ignored text"), () => {
    const hidden = [textPart("synthetic", { synthetic: true }), textPart("ignored", { ignored: true })]
    const parts = [...hidden, reasoningPart("reasoning"), textPart(" \n")]
    expect(shown(userMessage(parts))).toBeUndefined()
    expect(shown(assistant(parts))).toBeUndefined()
    expect(shown(assistant([...parts, textPart(" said ")]))).toBe("## Assistant\nsaid")
  })

  test(promised("handoff.D1", "a message shows failed and unfinished tools as such"), () => {
    const failed = toolPart("bash", failedTool("no such\nfile"))
    const pending = toolPart("edit", { status: "pending", input: {}, raw: "" })
    const running = toolPart("task", { status: "running", input: {}, title: "look", time: { start: 1 } })
    const unfinished = "[Tool unfinished: edit]\n[Tool unfinished: task] look"
    const all = shown(assistant([failed, pending, running]))
    expect(all).toBe(`## Assistant\n[Tool failed: bash] no such file\n${unfinished}`)
  })

  test(promised("handoff.D1", "a message marks compactions, their summaries and failures"), () => {
    expect(shown(asksToCompact())).toBe("## User\n[The session was compacted here]")
    expect(shown(assistantMessage("so far", { summary: true }))).toBe("## Assistant (summary of a compaction)\nso far")
    const error = { name: "MessageAbortedError" as const, data: { message: "The\nuser stopped it" } }
    const failed = shown(assistantMessage(undefined, { error }))
    expect(failed).toBe("## Assistant\n[Failed: MessageAbortedError The user stopped it]")
  })

  test(promised(["handoff.D1", "handoff.E2"], "a message names an attachment on one line, and no data of it"), () => {
    const data = `data:image/png;base64,${"A".repeat(100_000)}`
    const named = [filePart({ filename: "a\n## Assistant\nb" }), filePart({ url: data, mime: "image/png" })]
    const text = shown(userMessage([...named, filePart({ filename: "", url: "file:///p/b.ts" })]))
    expect(text).toBe("## User\n[Attached: a ## Assistant b]\n[Attached: image/png]\n[Attached: file:///p/b.ts]")
  })

  test(promised("handoff.D3", "a message shows tools as asked for"), () => {
    const tool = toolPart("bash", completedTool("list", "a\nb\n", { command: "ls" }))
    expect(shown(assistant([textPart("x"), tool]), "none")).toBe("## Assistant\nx")
    expect(shown(assistant([tool]), "none")).toBeUndefined()
    const full = '## Assistant\n[Tool: bash] list\nInput:\n  {"command":"ls"}\nOutput:\n  a\n  b'
    expect(shown(assistant([tool]), "full")).toBe(full)
    const failed = toolPart("bash", failedTool("no"))
    expect(shown(assistant([failed]), "full")).toBe("## Assistant\n[Tool failed: bash] no\nInput:\n  {}\nOutput:\n  no")
  })

  test(
    promised(["handoff.D3", "handoff.E2"], "a message cuts long titles, inputs and outputs, and says by how much"),
    () => {
      const long = "🎉".repeat(5_000)
      const text =
        shown(assistant([toolPart("bash", completedTool(`x${long}`, `x${long}`, { command: long }))]), "full") ?? ""
      expect(text.length).toBeLessThan(5_000)
      expect(text).toContain("… (8001 characters more)")
      expect(text.isWellFormed()).toBe(true)
    },
  )
})

describe("a transcript's cap", () => {
  test.each([
    ["many lines", (index: number) => `number ${index}\n`.repeat(300)],
    ["long lines", (index: number) => `number ${index}${"é".repeat(2_000)}`],
  ])(
    promised("handoff.D3", "a transcript's cap holds for %s, and loses no message from page to page"),
    (_what, text) => {
      const all = session(60, text)
      const seen: string[] = []
      let rest = all
      while (rest.length > 0) {
        const shown = render(rest, seen.length === 0 ? {} : { before: "msg_x" })
        expectToFit(shown)
        const older = /before: "msg_(\d+)"/.exec(shown)?.[1]
        const next = older === undefined ? 0 : Number(older)
        expect(next).toBeLessThan(rest.length)
        expect(/number \d+/.exec(shown)?.[0]).toBe(`number ${next}`)
        seen.unshift(...rest.slice(next).map(({ info }) => info.id))
        rest = rest.slice(0, next)
      }
      expect(seen).toEqual(all.map(({ info }) => info.id))
    },
  )

  test.each([
    ["one line", "x".repeat(1_000_000)],
    ["one line of long characters", `x${"🎉".repeat(500_000)}`],
    ["many lines", "x\n".repeat(500_000)],
    ["broken characters", `${"\ufffd".repeat(400_000)}x`],
  ])(
    promised(["handoff.D3", "handoff.E2"], "a transcript's cap cuts a single message that is too long, of %s"),
    (_what, long) => {
      const text = render([userSays("before", "msg_1"), userSays(long, "msg_2")])
      expectToFit(text)
      expect(text).toMatch(
        /\n\[cut: this message alone is longer [^\n]+\]\n\n\(Showing 1 most recent messages\.\)\n\(Older ones: .*"msg_2"\.\)$/,
      )
      expect(text.replaceAll("\ufffd", "").isWellFormed()).toBe(true)
      if (!long.includes("\ufffd")) expect(text).not.toContain("\ufffd")
    },
  )

  test(promised(["handoff.D1", "handoff.D3"], "a transcript's cap is kept and counted truly for any session"), () => {
    const long = ["x".repeat(MAX_TRANSCRIPT_BYTES), "y".repeat(20_000)]
    const tall = ["z\n".repeat(MAX_TRANSCRIPT_LINES), "a\n".repeat(700)]
    const text = fc.oneof(fc.string(), fc.constantFrom("", ...long, ...tall))
    forAll(500, [fc.array(text, { maxLength: 8 }), fc.boolean()], (texts, hasOlder) => {
      const messages = texts.map((each, index) => userSays(each, `msg_${index}`))
      const shown = render(messages, { hasOlder })
      expectToFit(shown)
      const footer = shown.slice(shown.lastIndexOf("\n\n(") + 1).trim()
      const count = Number(/^\((?:End of session - |Showing )(\d+)/.exec(footer)?.[1])
      expect(footer.startsWith("(End of session")).toBe(!hasOlder && count === messages.length)
      const oldest = messages[messages.length - count]
      if (!footer.startsWith("(End") && oldest) expect(footer).toContain(`"${oldest.info.id}"`)
      expect(count).toBeGreaterThanOrEqual(Math.min(1, messages.length))
    })
  })
})
