import type { ModelReply, ModelRequest, Script } from "../../test/support/scripted-model.ts"
import { LEXER, PARSER_TEST } from "./crlf-project.ts"

/** The small real project of the picture, and what happens in it: half a task, a handoff, and its first answer. */

export const TASK = {
  title: "Teach the parser CRLF",
  specification: "Lines may end in CRLF.\nKeep LF as it is.",
  definitionOfDone: "node --test passes with files from Windows",
}

export const workerMessage = (taskID: string): string =>
  `# Worker\n\nTask: ${taskID}\n\nNever touch the lexer; the release is frozen until Friday.`

const PARSER = `import { readWord } from "./lexer.js"

/** The words of each line. */
export const parse = (text) => text.split("\\n").map(readWord)
`

export const PROJECT_FILES: Record<string, string> = {
  "package.json": '{\n  "name": "my-project",\n  "private": true,\n  "type": "module"\n}\n',
  "src/parser.js": PARSER,
  "src/lexer.js": LEXER,
  "test/parser.test.js": PARSER_TEST,
}

export const GOAL = "make the tests pass on Windows"
export const WORK_DONE = "Three of four tests pass."
export const FIRST_ANSWER = "I go on with that test."

const STEPS: readonly { tool: string; input: Record<string, unknown> }[] = [
  { tool: "read", input: { filePath: "src/parser.js" } },
  { tool: "read", input: { filePath: "test/parser.test.js" } },
  {
    tool: "edit",
    input: { filePath: "src/parser.js", oldString: 'split("\\n")', newString: "split(/\\r?\\n/)" },
  },
  { tool: "bash", input: { command: "node --test", description: "Run the tests" } },
]

const HANDOFF = {
  prompt: [
    "Make the tests pass on Windows. `parse` splits at CRLF and at LF now; three of four tests pass.",
    'What fails: "the last line has no end". A CR at the end of the file stays in the last word.',
    "Tried and dropped: trimming every line, which eats spaces that belong to words.",
  ].join("\n\n"),
  files: ["src/parser.js", "test/parser.test.js", "src/lexer.js"],
}

const callsIn = (conversation: string): number => conversation.split("\n\n[tool] ").length - 1

/** An agent that does half of the task, hands it over when asked to, and goes on in the new session. */
export const sceneScript: Script = ({ kind, conversation }: ModelRequest): ModelReply => {
  if (kind === "compaction") return { text: "" }
  const last = conversation.slice(conversation.lastIndexOf("[user]"))
  if (last.includes("Hand this work over")) {
    return last.includes("[tool]")
      ? { text: "The draft is in the new session's prompt." }
      : { tool: "handoff_session", input: HANDOFF }
  }
  if (last.includes("Continuing work from session")) {
    return {
      text: `Three files are here, and the lexer stays as it is.\nThe last line of a file from Windows may end in a CR alone. ${FIRST_ANSWER}`,
    }
  }
  const step = STEPS[callsIn(last)]
  return step ?? { text: `The parser splits at CRLF and at LF. ${WORK_DONE}` }
}
