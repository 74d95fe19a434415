import { readFileSync } from "node:fs"
import type { ToolState } from "@opencode-ai/sdk"
import { describe, expect, test } from "vitest"
import { nextPartIDs } from "../../../.opencode/baton/handoff/attach-files.ts"
import { type HandoffFacts, renderDraft, renderHandoffFacts } from "../../../.opencode/baton/handoff/draft.ts"
import { joinWords, readHistory } from "../../../.opencode/baton/handoff/history.ts"
import { findChain } from "../../../.opencode/baton/handoff/records.ts"
import * as handoffTools from "../../../.opencode/baton/handoff/tools.ts"
import { createUserTurns } from "../../../.opencode/baton/handoff/user-turns.ts"
import { parseDirtyFiles } from "../../../.opencode/baton/host/git.ts"
import { collectUserText } from "../../../.opencode/baton/host/messages.ts"
import { detectUi } from "../../../.opencode/baton/host/tui.ts"
import { EMPTY_ACTIVITY } from "../../../.opencode/baton/task/activity.ts"
import type { PromptFile } from "../../../.opencode/baton/task/prompts.ts"
import { wordsOf } from "../../../.opencode/baton/task/task-search.ts"
import type { TaskWords } from "../../../.opencode/baton/task/user-words.ts"
import { promised } from "../../requirements.ts"
import * as stored from "../../support/opencode/stored-messages.ts"
import { createFakeSessions, createRecordedLog, handoffRecord, type LogLine } from "../../support/unit.ts"

const { assistantMessage, completedTool, textPart, toolPart, userMessage, userSays } = stored
const { asTyped, createToolOffers, isOwnCommand, registerCommand, toolsAskedFor } = handoffTools

const COMMAND_PATH = "prompts/handoff-command.md"

describe("the command", () => {
  const setUp = (file: PromptFile, command: Record<string, { template: string }> = {}) => {
    const log = createRecordedLog()
    const told: string[] = []
    registerCommand({ command }, { read: () => file }, log, ({ title }) => void told.push(title))
    return { command, log, told }
  }

  const GONE = { path: COMMAND_PATH, reason: "it does not exist" }
  const OWN = `${COMMAND_PATH} is the project's own (no contract comment): built-in text used`
  test.each<[PromptFile, LogLine["level"], Partial<LogLine>]>([
    [{ kind: "unusable", ...GONE }, "warn", { extra: GONE }],
    [{ kind: "foreign", path: COMMAND_PATH }, "info", { message: OWN }],
  ])(
    promised(["handoff.A1", "start.A4"], "/handoff is the built-in command where the file is %j"),
    (file, level, line) => {
      const { command, log, told } = setUp(file)
      for (let asked = 0; asked < 3; asked++) expect(command.handoff?.template).toContain("$ARGUMENTS")
      expect(log.lines).toMatchObject([{ level, ...line }])
      expect(told, "the user meant no other file").toEqual([])
    },
  )

  test(promised("handoff.A1", "a command's name that is taken is left alone, both names too"), () => {
    const file: PromptFile = { kind: "text", path: COMMAND_PATH, text: "One $ARGUMENTS" }
    const own = { template: "mine" }
    const first = setUp(file, { handoff: own })
    expect(first.command).toMatchObject({ handoff: own, "baton-handoff": { template: "One $ARGUMENTS" } })
    const both = setUp(file, { handoff: own, "baton-handoff": own })
    expect(both.command).toEqual({ handoff: own, "baton-handoff": own })
    expect(both.log.lines[0]?.level).toBe("warn")
  })
})

describe("the tools of a request", () => {
  test.each([
    ["Please hand this off to a new session.", ["handoff_session"]],
    ["/handoff", ["handoff_session"]],
    ["Do a hand-off now", ["handoff_session"]],
    ["call handoff_session", ["handoff_session"]],
    ["Continuing work from session ses_0123456789abcdef.", ["read_session"]],
    ["What is a beforehand offer? A shorthand over here? Secondhand edits?", []],
    ["Fix the bug.", []],
    ["Hand it over to a new session", ["handoff_session"]],
    ["Now a handoff.", ["handoff_session"]],
    ["Could you prepare the handoff?", ["handoff_session"]],
    ["With `prog desc` change only the handoff section; write the handoff section last.", []],
    ["The last handoff said that the lexer is done. Is the beforehand check over?", []],
    ["Read what was handed over before.", []],
  ])(promised(["handoff.A1", "people.A3"], "%j asks for the tools %j"), (text, tools) =>
    expect(toolsAskedFor(text)).toEqual(tools),
  )

  test.each(["worker", "planner"])(promised("people.A3", "prompts/%s.md asks for no tools"), (name) => {
    expect(toolsAskedFor(readFileSync(`prompts/${name}.md`, "utf8"))).toEqual([])
  })

  test(
    promised(
      "handoff.A1",
      "the tools of a request are hidden from a session that did not ask, and stay once it has asked",
    ),
    () => {
      const offers = createToolOffers()
      // Synthetic text and an assistant's words ask for nothing.
      const request = (text: string) => {
        const message = userMessage([textPart(text), textPart("handoff_session", { synthetic: true })])
        offers.applyTo([assistantMessage("Shall I use read_session?"), message])
        return message.info.role === "user" ? message.info.tools : undefined
      }
      expect(request("Hello.")).toEqual({ handoff_session: false, read_session: false })
      expect(request("Now a handoff.")).toEqual({ read_session: false })
      expect(request("Thanks.")).toEqual({ read_session: false })
      offers.forget("ses_1")
      expect(offers.isKnown("ses_1")).toBe(false)
      offers.enable("ses_1")
      expect(request("Go on.")).toEqual({ handoff_session: false })
    },
  )
})

test(promised("soak.B4", "of more than 500 sessions, the state of the one used least recently is dropped"), () => {
  const [turns, offers] = [createUserTurns(), createToolOffers()]
  for (let at = 0; at <= 500; at++) {
    turns.onCommand(`ses_${at}`, "finish it")
    offers.enable(`ses_${at}`)
  }
  expect([0, 1, 500].map((at) => turns.goalOf(`ses_${at}`))).toEqual(["", "finish it", "finish it"])
  expect([0, 1, 500].map((at) => offers.isKnown(`ses_${at}`))).toEqual([false, true, true])
})

test(promised("handoff.C4", "part ids sort behind every one that is there, or are made of the time"), () => {
  const existing = ["prt_20163c1ff001QpcV3XqhNZ9ml7", "prt_20163c1ff002aaaaaaaaaaaaaa", "other"]
  const ids = nextPartIDs(existing, 41, 0)
  expect([...existing.slice(0, 2), ...ids]).toEqual([...existing.slice(0, 2), ...ids].toSorted())
  expect(new Set(ids).size).toBe(41)
  expect(nextPartIDs([], 1, 1_795_319_644_671)[0]).toMatch(/^prt_20163c1ff000/)
})

const INDEX = "/$bunfs/root/src/index.js"

test.each([
  [["bun", "/$bunfs/root/src/cli/tui/worker.js"], false, "tui"],
  [["bun", "/$bunfs/root/src/cli/cmd/tui/worker.js"], false, "tui"],
  [["bun", INDEX, "run", "hello"], true, "run"],
  [["bun", INDEX, "--print-logs", "--log-level", "DEBUG", "run", "hello"], true, "run"],
  [["bun", INDEX, "--log-level=DEBUG", "run"], true, "run"],
  [["bun", INDEX, "serve"], true, "server"],
  [["bun", INDEX, "--print-logs", "serve", "run"], true, "server"],
  [["node", "/app/main.js"], true, "server"],
  [[], true, "server"],
] as const)(
  promised(["handoff.B2", "handoff.B3"], "the interface of %j on main thread %s is %s"),
  (argv, isMainThread, ui) => expect(detectUi({ argv, isMainThread })).toBe(ui),
)

describe("a session's history", () => {
  const tool = (name: string, input: Record<string, unknown>, metadata: Record<string, unknown> = {}) => ({
    ...assistantMessage(undefined, {}, { id: `msg_${name}` }),
    parts: [toolPart(name, { ...completedTool("", "", input), metadata } as ToolState)],
  })
  const messages = [
    userMessage([textPart("Pasted.", { synthetic: true })], "msg_0"),
    userSays("The first request.\n  Verbatim.", "msg_1"),
    tool("read", { filePath: "/project/src/a.ts" }),
    ...Array.from({ length: 600 }, (_, index) => userSays(`Later ${index}.`, `msg_l${index}`)),
    tool("edit", { filePath: "/project/src/b.ts" }),
    tool("apply_patch", { patchText: "*** Begin Patch\n*** Update File: src/c.ts\n@@\n-a\n+b\n*** End Patch" }),
    tool("bash", { command: "npm test" }, { exit: 1 }),
    assistantMessage("Summary.", { summary: true, finish: "stop" }),
    // A failed summary is no compaction, as in the ledger.
    assistantMessage("", { summary: true }),
  ]

  test.each([true, false])(
    promised("handoff.A2", "a session's history gives first request and work (cursors: %s)"),
    async (cursors) => {
      const sessions = createFakeSessions(new Map([["ses_1", { messages }]]), { cursors })
      const history = await readHistory(sessions, "ses_1", { root: "/project", shouldStop: () => false })
      expect(history.words[0]?.text).toBe("The first request.\n  Verbatim.")
      expect(history.words).toHaveLength(601)
      const files = history.activity.files.map(({ path, reads, changes }) => `${path} ${reads} ${changes}`)
      expect(files).toEqual(["src/a.ts 1 0", "src/b.ts 0 1", "src/c.ts 0 1"])
      expect(history).toMatchObject({ activity: { failures: [{ command: "npm test", exitCode: 1 }] }, compactions: 1 })
      expect(history.incomplete).toBeUndefined()
    },
  )

  test(
    promised("handoff.A2", "a history that could not be read to its beginning invents no first request"),
    async () => {
      const sessions = createFakeSessions(new Map([["ses_1", { messages }]]))
      let pages = 0
      const history = await readHistory(sessions, "ses_1", { root: "/project", shouldStop: () => pages++ > 0 })
      expect(history.words.map(({ text }) => text)).not.toContain("The first request.\n  Verbatim.")
      expect(history.incomplete).toBe("it took too long")
      expect(history.activity.files.map(({ path }) => path)).toEqual(["src/b.ts", "src/c.ts"])
    },
  )
})

describe("the facts of a handoff", () => {
  const render = (known: Partial<HandoffFacts>) =>
    renderHandoffFacts({ compactions: 0, activity: EMPTY_ACTIVITY, todos: [], ...known })

  test(
    promised(
      ["handoff.A2", "handoff.F1", "words.A2"],
      "the facts of a handoff hold the user's words, the newest and the first whole",
    ),
    () => {
      const texts = ["First, build it.", "a".repeat(5_000), "b".repeat(4_000), "Task: ts-0bad00\n  c"]
      const said = { words: wordsOf(texts.map((text, at) => userSays(text, `msg_${at}`))), leftOut: 0 }
      const text = render({ said })
      expect(text).toContain("## The user's own words, newest first\nLater words outrank earlier ones")
      for (const part of [" Task: ts-0bad00\n  c", "b".repeat(4_000), "First, build it.", "(1 older message left out)"])
        expect(text).toContain(part)
      expect(text).not.toContain("aaa")
      const cut = render({ said: { words: wordsOf([userSays("x".repeat(9_000))]), leftOut: 0 } })
      expect(cut).toMatch(/xxx\n\[cut to 7\d\d\d of 9000 characters\]/)
    },
  )

  test(promised("handoff.F1", "the facts of a handoff bound a task's own text, and say where the rest is"), () => {
    const task = { taskID: "ts-b54507", definitionOfDone: "d".repeat(2_001), specification: "s".repeat(6_010) }
    const text = render({ task })
    expect(text).toContain("## Definition of done\nddd")
    expect(text).toContain("(1 characters more; prog show ts-b54507 has them)\n\n## Specification\nsss")
    expect(text).toContain("(10 characters more; prog show ts-b54507 has them)\n\n## Facts gathered")
  })

  test(
    promised("handoff.A2", "the facts of a handoff name what git calls not committed, renames by where they went"),
    () => {
      const dirty = parseDirtyFiles(" M a.ts\0R  new name.ts\0old.ts\0?? b\0 D gone.ts\0")
      expect(dirty.map(({ path }) => path)).toEqual(["a.ts", "new name.ts", "b", "gone.ts"])
      expect(dirty.map(({ isUntracked }) => isUntracked)).toEqual([false, false, true, false])
      expect(parseDirtyFiles("")).toEqual([])
    },
  )
})

describe("the chain of handoffs", () => {
  const records = [
    handoffRecord("A", ["B"]),
    handoffRecord("B", ["C", "D"]),
    handoffRecord("X", ["Y"]),
    handoffRecord("C"),
    // Damaged.
    handoffRecord("circle", ["back"]),
    handoffRecord("back", ["circle"]),
  ]

  test.each([
    ["A", ["A", "B", "C"]],
    ["C", ["A", "B", "C"]],
    ["Y", ["X"]],
    ["nobody", []],
    ["circle", ["circle", "back"]],
  ])(promised("handoff.B5", "the chain of handoffs is found from %s"), (session, expected) =>
    expect(findChain(records, session).map(({ from }) => from)).toEqual(expected),
  )
})

describe("what belongs to one user message", () => {
  test(promised("handoff.A1", "a goal is there for the command's own message, and gone with the next"), () => {
    const turns = createUserTurns()
    turns.onMessage("ses_1")
    turns.onCommand("ses_1", "finish it")
    turns.onMessage("ses_1")
    expect([turns.goalOf("ses_1"), turns.goalOf("ses_2")]).toEqual(["finish it", ""])
    turns.onMessage("ses_1")
    expect(turns.goalOf("ses_1")).toBe("")
  })

  test(promised("handoff.B2", "a second call makes no second handoff, also while the first is at work"), async () => {
    const turns = createUserTurns()
    let made = 0
    const handOver = async () => `handoff ${++made}`
    const both = [turns.oncePerTurn("ses_1", handOver), turns.oncePerTurn("ses_1", handOver)]
    const again = "Already handed over in this turn; nothing was done again.\n\nhandoff 1"
    expect(await Promise.all(both)).toEqual(["handoff 1", again])
    turns.onMessage("ses_1")
    expect(await turns.oncePerTurn("ses_1", handOver)).toBe("handoff 2")
  })

  test(promised("handoff.B2", "a handoff that failed may be tried again in the same turn"), async () => {
    const turns = createUserTurns()
    await expect(turns.oncePerTurn("ses_1", () => Promise.reject(new Error("no disk")))).rejects.toThrow("no disk")
    expect(await turns.oncePerTurn("ses_1", async () => "made")).toBe("made")
  })
})

const ROLE_PROMPT = "# Worker\n\nTask: ts-b54507\n\nYou carry this one task.\n<!-- baton:brief -->\nMind the lexer."
const COMMAND = "# Hand this work over to a new session\n\nThe user ends this session here."
const EDITED_COMMAND = { kind: "text", path: "prompts/a.md", text: "Now over:\n\n$ARGUMENTS\n\nEnd." } as const
const isCommand = isOwnCommand({ read: () => EDITED_COMMAND })

test.each([
  ["with a goal", "--start finish it", "/handoff --start finish it"],
  ["without one", "", "/handoff"],
])(promised("people.A2", "a filled template is shown as it was typed, %s"), (_, goal, shown) => {
  const prompts = { read: () => EDITED_COMMAND }
  const typed = (text: string) => collectUserText(asTyped(userSays(text, "msg_1"), prompts).parts)
  expect(typed(EDITED_COMMAND.text.replace("$ARGUMENTS", goal))).toBe(shown)
  expect(typed("Now over: to you.")).toBe("Now over: to you.")
})

const says = (texts: readonly string[], sessionID = "ses_1") =>
  wordsOf(
    texts.map((text, at) => ({
      ...userSays(text, `msg_${at}`),
      info: { ...userSays(text, `msg_${at}`).info, sessionID, time: { created: at } },
    })),
  )
const collect = (texts: readonly string[], kept: readonly TaskWords[] = []) =>
  joinWords(says(texts), kept, isCommand).words.map(({ text }) => text)

const DRAFT = renderDraft({ sessionID: "ses_0", files: [], goal: "", prompt: "Go on.", facts: "Facts." })

describe("the user's own words", () => {
  test.each([
    ["without a role prompt", [ROLE_PROMPT, "Use tabs."], ["Mind the lexer.", "Use tabs."]],
    ["without our command", [COMMAND, "Build it.", "Now over:\n\nthe parser\n\nEnd."], ["Build it."]],
    ["without an answer to /task", ["Build it.", "/task\n\nThis session has no task."], ["Build it."]],
    ["as typed, a heading inside too", ["Build it.\n\n# Worker\n  x"], ["Build it.\n\n# Worker\n  x"]],
    ["none", [COMMAND, "# Planner\n", " "], []],
  ])(promised(["handoff.F1", "words.A1"], "the user's own words are taken %s"), (_why, texts, words) => {
    expect(collect(texts)).toEqual(words)
  })

  test(
    promised(
      "words.A1",
      "the user's own words are the kept ones since the session has its task: a template stands for no words",
    ),
    () => {
      const kept = { words: says(["", "Task: ts-b54507\nBuild it.", "", "No comments."]), leftOut: 0 }
      expect(
        collect(["Hello there.", "Task: ts-b54507\nBuild it.", "A command's template.", "No comments."], [kept]),
      ).toEqual(["Hello there.", "Task: ts-b54507\nBuild it.", "No comments."])
    },
  )

  test.each([
    ["as it was made", DRAFT, []],
    ["with words around it", `Be quick. ${DRAFT}\n\nAnd mind the lexer.`, ["Be quick.\nAnd mind the lexer."]],
    ["that was edited", `Be quick.\n${DRAFT.replace("Go on.", "Go on, please.")}`, ["Be quick."]],
  ])(
    promised(["handoff.F1", "words.A1"], "the user's own words follow the chain through a draft %s"),
    (_why, draft, around) => {
      const before = { words: says(["Build it.", "Use tabs."], "ses_0"), leftOut: 0 }
      expect([...collect([draft, "No comments."], [before])].sort()).toEqual(
        ["Build it.", "Use tabs.", ...around, "No comments."].sort(),
      )
    },
  )
})
