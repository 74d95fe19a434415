import { readFileSync } from "node:fs"
import { join } from "node:path"
import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { createBudget } from "../../../.opencode/baton/compaction/budget.ts"
import { renderNote } from "../../../.opencode/baton/compaction/texts.ts"
import { collectUserText, DRAFT_START } from "../../../.opencode/baton/host/messages.ts"
import { untrusted } from "../../../.opencode/baton/host/quoted.ts"
import { EMPTY_ACTIVITY } from "../../../.opencode/baton/task/activity.ts"
import { extractProtocol } from "../../../.opencode/baton/task/prompts.ts"
import {
  DRAFT_FACTS,
  NO_WORDS,
  renderUserWords,
  type TaskWords,
  type TypedMessage,
  toUserWords,
  withWords,
} from "../../../.opencode/baton/task/user-words.ts"
import { promised } from "../../requirements.ts"
import { REPOSITORY } from "../../support/opencode/opencode-binary.ts"
import { forAll, taskWords, textPart, userWords } from "../../support/unit.ts"

const typed = (text: string, command?: TypedMessage["command"]): string | undefined =>
  toUserWords({ sessionID: "ses_1", messageID: "msg_1", createdAt: 0, text, command })?.text

const FACTS = `${DRAFT_FACTS}\n\n\`\`\`\`text\n## Facts\n\`\`\`text\nA quotation.\n\`\`\`\n\`\`\`\``
const DRAFT = `${DRAFT_START}ses_0. When you lack it, use read_session.\n\nGo on with the parser.\n\n${FACTS}`

describe("what the user typed", () => {
  test.each<[what: string, text: string, words: string | undefined]>([
    ["a message, verbatim", "  Mind the lexer.\n\n\tAnd the AST.  ", "Mind the lexer.\n\n\tAnd the AST."],
    [
      "the words behind a role prompt",
      "# Worker\n\nTask: ts-b54507\n\nYou work.\n<!-- baton:brief -->\nMind it.",
      "Mind it.",
    ],
    ["nothing of a role prompt alone", "# Worker\n\nTask: ts-b54507\n\nYou work.\n<!-- baton:brief -->\n", undefined],
    ["nothing of a draft", DRAFT, undefined],
    ["the words before a draft", `Mind the lexer.\n${DRAFT}`, "Mind the lexer."],
    ["the words behind a draft", `${DRAFT}\n\nMind the AST.`, "Mind the AST."],
    [
      "the words on both sides of a draft",
      `Mind the lexer.\n\n${DRAFT}\nMind the AST.`,
      "Mind the lexer.\nMind the AST.",
    ],
    [
      "nothing behind a draft without facts",
      `Go.\n${DRAFT_START}ses_0. When you lack it, use read_session.\nIts words.`,
      "Go.",
    ],
    [
      "the words behind a draft's first few, which a user may write",
      `${DRAFT_START}ses_0: use pnpm.\nMind the lexer.`,
      `${DRAFT_START}ses_0: use pnpm.\nMind the lexer.`,
    ],
    ["nothing of /handoff's template", "# Hand this work over to a new session\n\nWrite a draft.", undefined],
    ["nothing of an answer to /task", "/task\n\nThis session has no task.", undefined],
    [
      "a question about handing over",
      "How do I hand this work over to a new session?",
      "How do I hand this work over to a new session?",
    ],
    ["nothing of a line that names a task", "Task: ts-b54507", undefined],
    ["nothing of lines that name task and role", "# Planner\n\nTask: ts-b54507\n", undefined],
    ["nothing of a natural spelling alone", "Work on ts-b54507", undefined],
    ["the whole message that says more", "Task: ts-b54507\nMind the lexer.", "Task: ts-b54507\nMind the lexer."],
    ["nothing of blanks", " \n\t ", undefined],
  ])(promised("words.A1", "what the user typed is %s"), (_what, text, words) => expect(typed(text)).toBe(words))

  test(
    promised("words.A5c", "what the user typed is kept without keys, also at its cut, and else as it stands"),
    () => {
      const key = `sk-live-${"0123456789abcdef"}`
      expect(typed(`Use ${key}; the type has password: string.`)).toBe("Use [redacted]; the type has password: string.")
      expect(typed(`${"x ".repeat(11_995)}${key}`)).not.toContain("sk-live")
    },
  )

  test.each([
    ["src/a.ts as a CLI", "/review src/a.ts as a CLI"],
    ["  \n", undefined],
  ])(promised("words.A1", "what the user typed of a command is its arguments: %j"), (given, words) => {
    expect(typed("A template of the project.", { name: "review", arguments: given })).toBe(words)
  })

  test(
    promised(
      ["words.A1", "words.B3"],
      "what the user typed is nothing of another agent's message or of OpenCode's own text",
    ),
    () => {
      const c2c = textPart('<c2c event="message" from="ada">Drop the table.</c2c>')
      const read = textPart("Called the Read tool.", { synthetic: true })
      expect(typed(collectUserText([c2c, read, textPart("Mind the lexer.")]))).toBe("Mind the lexer.")
      expect(typed(collectUserText([c2c, read]))).toBeUndefined()
    },
  )

  test(promised("words.A1", "what the user typed has its session, message and time"), () => {
    const createdAt = Date.parse("2026-01-02T03:04:05.006Z")
    expect(toUserWords({ sessionID: "ses_7", messageID: "msg_9", createdAt, text: "Go." })).toEqual({
      sessionID: "ses_7",
      messageID: "msg_9",
      at: "2026-01-02T03:04:05.006Z",
      text: "Go.",
    })
  })
})

describe("the words on a task", () => {
  test(promised("words.A1", "words on a task are in the order of their time, each message once"), () => {
    const earlier = userWords("Older, of another session.", 1, "ses_0")
    const said = withWords(taskWords("One.", "Two.", "Three."), [userWords("Two.", 1), earlier])
    expect(said.words.map(({ text }) => text)).toEqual(["One.", "Two.", "Older, of another session.", "Three."])
    expect(withWords(NO_WORDS, said.words)).toEqual(said)
  })

  test(
    promised("words.A1", "words on a task that a fork has copies of count once, a command's as they were typed"),
    () => {
      const [plain, command] = [userWords("Mind the AST.", 1, "ses_0"), userWords("/review src/a.ts", 2, "ses_0")]
      const copies = [userWords("Mind the AST.", 1, "ses_9"), userWords("Review with care: src/a.ts", 2, "ses_9")]
      const texts = ["Mind the AST.", "/review src/a.ts"]
      for (const [own, others] of [
        [copies, [plain, command]],
        [[plain, command], copies],
      ] as const) {
        const { words } = withWords(withWords(NO_WORDS, own), others)
        expect(words.map(({ text }) => text)).toEqual(texts)
        expect(words.map(({ sessionID }) => sessionID)).toEqual(own.map(({ sessionID }) => sessionID))
      }
    },
  )

  test(
    promised(
      "words.A1",
      "the words on a task are kept up to 64,000 characters: the oldest but the first make room, counted",
    ),
    () => {
      const long = Array.from({ length: 20 }, (_, at) => userWords(`${at} ${"x".repeat(5_000)}`, at))
      const said = withWords(NO_WORDS, long)
      const numbers = said.words.map(({ text }) => Number.parseInt(text, 10))
      expect(numbers).toEqual([0, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19])
      expect(said.leftOut).toBe(8)
      expect(withWords(said, [userWords("y".repeat(5_000), 30)]).leftOut).toBe(9)
    },
  )
})

const heading = "### H"
const OUTRANK = "Later words outrank earlier ones, and all of them the task's text and any summary."
const shown = (text: string) => `2026-01-01 00:00 UTC:\n\`\`\`text\n${text}\n\`\`\``
const within = (room: number) => ({ heading, fits: (text: string) => text.length <= room })

describe("the text of the user's words", () => {
  test(
    promised(
      "words.A2",
      "the text of the user's words has the newest first, then older ones, and the first of the task last",
    ),
    () => {
      const parts = [`${heading}\n${OUTRANK}`, shown("Three."), shown("Two."), shown("One.")]
      expect(renderUserWords(taskWords("One.", "Two.", "Three."), { heading })).toBe(parts.join("\n\n"))
      expect(renderUserWords(NO_WORDS, { heading })).toBe("")
    },
  )

  test(promised("words.A2", "the text of the user's words names the number that is left out before the first"), () => {
    const said = taskWords("One.", "Two.", "Three.", "Four.")
    const text = [`${heading}\n${OUTRANK}`, shown("Four."), "(2 older messages left out)", shown("One.")].join("\n\n")
    expect(renderUserWords(said, within(text.length))).toBe(text)
    expect(renderUserWords({ ...said, leftOut: 5 }, within(text.length))).toBe(text.replace("(2", "(7"))
  })

  test(
    promised(
      "words.A2",
      "the text of the user's words gives the newest the room of the first, and is cut only as the last",
    ),
    () => {
      const said = taskWords("1".repeat(300), "2".repeat(300))
      const whole = `${heading}\n${OUTRANK}\n\n${shown("2".repeat(300))}\n\n(1 older message left out)`
      expect(renderUserWords(said, within(whole.length))).toBe(whole)
      expect(renderUserWords(said, within(whole.length - 1))).toMatch(
        /\n```text\n2+\n\[cut to (\d+) of 300 characters\]\n```\n\n\(1 older message left out\)$/,
      )
      expect(renderUserWords(said, within(100))).toBe("")
    },
  )

  const words = fc.array(fc.string({ minLength: 1, maxLength: 400, unit: "grapheme" }), { minLength: 1, maxLength: 30 })
  test(
    promised(
      "words.A2",
      "the text of the user's words fits in any room, its newest whole or cut with the count, and no message uncounted",
    ),
    () => {
      forAll(200, [words, fc.nat(40), fc.integer({ min: 150, max: 8_000 })], (texts, leftOut, room) => {
        const all = texts.map((text) => `<${text.replaceAll(/[`~\n\r]/g, "'")}>`)
        const said: TaskWords = { ...taskWords(...all), leftOut }
        const text = renderUserWords(said, within(room))
        expect(text.length).toBeLessThanOrEqual(room)
        expect(text.isWellFormed()).toBe(true)
        if (text === "") {
          expect(room).toBeLessThan(300)
          return
        }
        const [, cut, of] = /\n\[cut to (\d+) of (\d+) characters\]/.exec(text) ?? []
        const newest = all.at(-1) ?? ""
        if (cut === undefined) expect(text).toContain(`\n${newest}\n`)
        else {
          expect(Number(of)).toBe(newest.length)
          expect(text).toContain(`\n${newest.slice(0, Number(cut))}\n[cut to`)
        }
        const shownCount = text.split("```text\n").length - 1
        const [, missing = "0"] = /\n\((\d+) older messages? left out\)/.exec(text) ?? []
        expect(shownCount + Number(missing)).toBe(all.length + leftOut)
      })
    },
  )
})

const WORKER = readFileSync(join(REPOSITORY, "prompts/worker.md"), "utf8")

test.each([
  { contextTokens: 200_000, whole: 12 },
  { contextTokens: 32_000, whole: 10 },
])(
  promised("words.A2", "of 200 messages of 500 characters a full note holds the last $whole at $contextTokens tokens"),
  ({ contextTokens, whole }) => {
    const texts = Array.from({ length: 200 }, (_, at) => `Message ${at}: `.padEnd(500, "x"))
    const file = (at: number) => ({
      path: `src/feature/part-${at}/file-${at}.ts`,
      reads: 1,
      changes: 1,
      byShell: false,
    })
    const files = Array.from({ length: 40 }, (_, at) => file(at))
    const note = renderNote({
      identity: {
        taskID: "ts-b54507",
        role: "worker",
        said: withWords(NO_WORDS, taskWords(...texts).words),
        protocol: extractProtocol(WORKER, { taskID: "ts-b54507" }) ?? "",
        hasShell: true,
        ledger: {
          title: untrusted("Teach the parser CRLF"),
          status: untrusted("in_progress"),
          definitionOfDone: untrusted("All tests pass, and the old files still parse."),
          specification: untrusted("s".repeat(3_000)),
        },
      },
      facts: { compactions: 7, activity: { ...EMPTY_ACTIVITY, files }, todos: [] },
      logs: [],
      number: 7,
      summary: "A summary.",
      verdict: { saysLess: false },
      budget: createBudget(contextTokens),
    })
    const held = texts.map((text, at) => (note.includes(text) ? at : -1)).filter((at) => at >= 0)
    const last = Array.from({ length: whole }, (_, at) => 200 - whole + at)
    expect(held[0], "the one that began the task").toBe(0)
    expect(held.slice(-whole)).toEqual(last)
    if (contextTokens < 200_000) expect(held).toHaveLength(1 + whole)
  },
)
