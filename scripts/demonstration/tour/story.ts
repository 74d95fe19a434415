import { isOrdered, stepsMade } from "../../../test/support/model/pass-over-script.ts"
import { COMPACTING_PROMPT_TOKENS } from "../../../test/support/model/retention.ts"
import {
  type ModelReply,
  type ModelRequest,
  newestWords,
  type Script,
} from "../../../test/support/model/scripted-model.ts"

/** The tour's script: a small real project, its user's messages, and the agents' actions. */

export const TASK = {
  title: "Teach the parser CRLF",
  specification: "Lines may end in CRLF. Keep LF as it is.",
  definitionOfDone: "node --test passes with files from Windows",
}

const PARSER = `import { readWord } from "./lexer.js"

/** The first word of each line. */
export const parse = (text) => text.split("\\n").map(readWord)
`

const LEXER = `export const readWord = (line) => line.split(" ")[0]
`

const PARSER_TEST = `import assert from "node:assert/strict"
import { test } from "node:test"
import { parse } from "../src/parser.js"

test("LF", () => assert.deepEqual(parse("a b\\nc"), ["a", "c"]))
test("CRLF", () => assert.deepEqual(parse("a\\r\\nc"), ["a", "c"]))
test("a lone CR ends no line", () => assert.deepEqual(parse("a\\rb"), ["a\\rb"]))
test("the last line has no end", () => assert.deepEqual(parse("a\\r\\nb\\r"), ["a", "b"]))
`

export const FROZEN_FILE = "src/lexer.js"

export const PROJECT_FILES: Readonly<Record<string, string>> = {
  "package.json": '{\n  "name": "my-project",\n  "private": true,\n  "type": "module"\n}\n',
  "src/parser.js": PARSER,
  [FROZEN_FILE]: LEXER,
  "test/parser.test.js": PARSER_TEST,
}

/** Written by the user after the installation. */
export const POLICY = { path: ".opencode/pass-over.json", text: '{ "defaults": { "auto_return": true } }\n' }

const FIRST = PARSER.slice(PARSER.indexOf("export"))
const WITH_SPACES = `export const parse = (text) => {
  const lines = text.split(/\\r?\\n/)
  return lines.map(readWord)
}
`
const WITH_TABS = WITH_SPACES.replaceAll("  ", "\t")
const SPLIT = "text.split("
const SPLIT_MENDED = 'text.replace(/\\r$/, "").split('

/** The parser at the end, with all of the agents' edits. */
export const FINAL_PARSER = PARSER.replace(FIRST, WITH_TABS.replace(SPLIT, SPLIT_MENDED))
export const RELEASE_NOTE = { path: "CHANGES.md", text: "# Changes\n\n- The parser reads files from Windows.\n" }
/** A file that a subagent writes without being asked. */
const UNWANTED = { path: "NOTES.md", text: "# Notes\n\nLine ends are a long story.\n" }

export const BRIEF = `Never touch ${FROZEN_FILE}; it is frozen until Friday.`
export const startMessage = (taskID: string): string => `Task: ${taskID}\n${BRIEF}`
export const CORRECTION = "No, always use tabs instead of spaces here."
export const SAID = {
  review: "Have it reviewed.",
  mend: "Let another agent mend it.",
  take: "Take the parser, not the notes.",
  test: "Now run the tests.",
  goal: "write the release note",
  go: "Go on.",
  write: "Write it now.",
  other: "Write a parser for TSV files.",
} as const

export const ANSWERS = {
  start: "The parser splits at CRLF and at LF.",
  corrected: "Tabs it is.",
  reviewed: "The reviewer wants one change.",
  mended: "Two files came back and are held.",
  taken: "The parser is in, the notes are not.",
  tested: "All four tests pass.",
  handed: "The draft is ready.",
  begun: "I have the draft and the parser.",
  written: "The release note is written.",
  other: "With tabs, as you always want them.",
} as const

const REVIEW = {
  subagent: "audit",
  objective: "Review the CRLF change in src/parser.js for lost line ends",
  reason: "code_review",
  files: ["src/parser.js"],
}
export const FINDING = "a lone CR at the end of the text stays in the last word"
/** Judges by the file as the reviewer has read it. */
const reviewOf = (conversation: string) => {
  const read = conversation.slice(conversation.lastIndexOf("[tool]"))
  const line = Number(/^(?:<content>)?\s*(\d+)\W.*text\.split\(/m.exec(read)?.[1] ?? 0)
  if (line === 0) return { status: "completed", decision: "approved", summary: "No line end is lost." }
  const finding = {
    severity: "error",
    path: "src/parser.js",
    line,
    message: FINDING,
    fix: "cut it off before the split",
  }
  return {
    status: "completed",
    decision: "changes_requested",
    summary: "One line end is lost.",
    findings: [finding],
  }
}
const MEND = {
  subagent: "general",
  objective: "Cut a lone CR off the end of the text in src/parser.js",
  reason: "fix",
  files: ["src/parser.js"],
}
const HANDOFF = {
  prompt: "Write the release note in CHANGES.md: the parser reads files from Windows now. All four tests pass.",
  files: ["src/parser.js", "test/parser.test.js"],
}

/** By a faithful summariser, by a careless one, and an empty one; the last is the new session's. */
const SUMMARIES = ["The parser splits at CRLF. Tests were run.", "Some work was done.", "", "It went fine."]

type Step = { tool: string; input: Record<string, unknown> }

const READ: Step = { tool: "read", input: { filePath: "src/parser.js" } }
const edit = (oldString: string, newString: string): Step => ({
  tool: "edit",
  input: { filePath: "src/parser.js", oldString, newString },
})
const write = ({ path, text }: { path: string; text: string }): Step => ({
  tool: "write",
  input: { filePath: path, content: text },
})
const returns = (input: Record<string, unknown>): Step => ({ tool: "pass_over_return", input })
const RUN_TESTS: Step = { tool: "bash", input: { command: "node --test", description: "Run the tests" } }

/** An agent's reaction to a message: its calls, one after the other, and its final answer. */
type Scene = readonly [hears: string, steps: readonly Step[], says: string]

/** The first match counts, so messages that may quote earlier ones come first. */
const SCENES: readonly Scene[] = [
  [SAID.other, [], ANSWERS.other],
  ["Hand this work over", [{ tool: "handoff_session", input: HANDOFF }], ANSWERS.handed],
  [SAID.review, [{ tool: "pass_over", input: REVIEW }], ANSWERS.reviewed],
  [SAID.mend, [{ tool: "pass_over", input: MEND }], ANSWERS.mended],
  [CORRECTION, [READ, edit(WITH_SPACES, WITH_TABS)], ANSWERS.corrected],
  [BRIEF, [READ, edit(FIRST, WITH_SPACES)], ANSWERS.start],
]

const MENDED = { status: "completed", summary: "The lone CR is cut off.", findings: [] }
const SUBAGENT_SCENES: readonly Scene[] = [
  [MEND.objective, [READ, edit(SPLIT, SPLIT_MENDED), write(UNWANTED), returns(MENDED)], ""],
]

/** Applies the parser of the newest pass and rejects the rest. */
const takeParser = (conversation: string): Scene => {
  const pass_over_id = conversation.match(/\bpass_\d+_[0-9a-f]+/g)?.at(-1) ?? ""
  const apply = { tool: "pass_over_apply", input: { pass_over_id, artifacts: ["src/parser.js"] } }
  return [SAID.take, [apply, { tool: "pass_over_reject", input: { pass_over_id } }], ANSWERS.taken]
}

/** Compactions of the first session; each follows a run of the tests. */
const FIRST_COMPACTIONS = 3

/** The next step of the scene that the text names. */
const play = (request: ModelRequest, scenes: readonly Scene[], heard: string): ModelReply | undefined => {
  const scene = scenes.find(([hears]) => heard.includes(hears))
  return scene && (scene[1][stepsMade(request)] ?? { text: scene[2] })
}

/** Names the task only if this request holds it. */
const withTask = (conversation: string, says: string): ModelReply => {
  const taskID = /\bts-[0-9a-f]{6}\b/.exec(conversation)?.[0]
  return { text: taskID ? `${says} That is ${taskID}.` : "I do not know what I am working on." }
}

/**
 * The agents of the tour. The user's agent fills its context when asked to run the tests or to write, so that it is compacted
 * after each of these steps.
 *
 * @param released delays the first answer of the handed-over session
 */
export const createTourAgent = (released: Promise<void>): Script => {
  let compactions = 0
  /** OpenCode 1.14 may compact twice before the next turn; both get the same summary. */
  let isAgain = false
  const summary = (): ModelReply => {
    if (!isAgain) compactions++
    isAgain = true
    return { text: SUMMARIES[compactions - 1] ?? "" }
  }
  const afterCompaction = (conversation: string): ModelReply => {
    if (compactions < FIRST_COMPACTIONS) return { ...RUN_TESTS, promptTokens: COMPACTING_PROMPT_TOKENS }
    return withTask(conversation, compactions === FIRST_COMPACTIONS ? ANSWERS.tested : ANSWERS.written)
  }
  return async (request): Promise<ModelReply> => {
    const { kind, conversation } = request
    if (kind === "compaction") return summary()
    if (kind === "turn") isAgain = false
    if (isOrdered(request)) {
      const order = conversation.slice(0, conversation.indexOf("# Context of the work"))
      const review: Scene = [REVIEW.objective, [READ, returns(reviewOf(conversation))], ""]
      return play(request, [review, ...SUBAGENT_SCENES], order) ?? { text: "There is no such order." }
    }
    // The last message of the user, or of OpenCode in the user's place, without tool answers.
    const spoken = newestWords(request).split("\n\n[assistant]", 1).join()
    if (spoken.includes("Continuing work from session") || spoken.includes(SAID.go)) {
      await released
      return withTask(conversation, ANSWERS.begun)
    }
    const filling = spoken.includes(SAID.test) ? RUN_TESTS : spoken.includes(SAID.write) && write(RELEASE_NOTE)
    if (filling) return { ...filling, promptTokens: COMPACTING_PROMPT_TOKENS }
    return play(request, [takeParser(conversation), ...SCENES], spoken) ?? afterCompaction(conversation)
  }
}
