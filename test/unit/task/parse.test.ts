import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { collectUserText } from "../../../.opencode/baton/host/messages.ts"
import type { Role } from "../../../.opencode/baton/task/parse.ts"
import * as parser from "../../../.opencode/baton/task/parse.ts"
import { promised } from "../../requirements.ts"
import { forAll } from "../../support/for-all.ts"

const { DEFAULT_ROLE, extractBrief, parseRole, parseTask, parseTaskID, ROLES, taskText } = parser

const MEGABYTE = 1_048_576

const NAMED: readonly (readonly [why: string, text: string, taskID: string])[] = [
  ["the longest hex part", "Task: ts-0123456789ab", "ts-0123456789ab"],
  ["hex letters alone after prog's prefix, with a title", "Task: EP-facade rework it", "ep-facade"],
  ["hex letters alone, closed by the quote of the shell", '"Do this.\nTask: xy-abcd"', "xy-abcd"],
  ["hex letters alone, with blanks behind", "Task: xy-abcd \t", "xy-abcd"],
  ["no blank", "Task:ts-b54507", "ts-b54507"],
  ["several blanks", "Task: \t ts-b54507", "ts-b54507"],
  ["a no-break space", "Task:\u00a0ts-b54507", "ts-b54507"],
  ["a title after a colon", "Task: ts-b54507: fix the parser", "ts-b54507"],
  ["a dash and no word", "Task: ts-b54507- fix the parser", "ts-b54507"],
  ["a full stop", "Task: ts-b54507.", "ts-b54507"],
  ["a backslash-n that no shell interpreted", "Task: ts-b54507\\nFix it", "ts-b54507"],
  ["a fence that never ends", "```\nTask: ts-b54507", "ts-b54507"],
  ["the quotes of opencode run and stdin", '"Please do"\nTask: ts-b54507\n', "ts-b54507"],
  ["a byte order mark", "\uFEFFTask: ts-b54507", "ts-b54507"],
  ["a byte order mark inside the quotes", '"\uFEFFTask: ts-b54507"', "ts-b54507"],
  ["the first of two", "Task: ts-aaaa11\nTask: ts-bbbb22", "ts-aaaa11"],
  ["the first that is one", "Task: re-added tests\nTask: {{task_id}}\nTask: ts-b54507", "ts-b54507"],
  ["its own line after a quoted message", "> Task: ts-aaaa11\n\nTask: ts-b54507", "ts-b54507"],
]

const UNNAMED: readonly (readonly [why: string, text: string])[] = [
  ["words made of hex letters, with a full stop", "Task: re-added."],
  ["more such words in capitals", "Task: CO-DECADE plan"],
  ["such words with a colon", "Task: be-dead: no"],
  ["a 13th hex digit", "Task: ts-0123456789abc"],
  ["three hex digits", "Task: ts-123"],
  ["one letter", "Task: t-b54507"],
  ["a combining mark", "Task: ts-b54507\u0301"],
  ["look-alike letters", "Task: t\u017f-b54507"],
  ["full-width digits", "Task: ts-１２３４"],
  ["an id on the next line", "Task:\nts-b54507"],
  ["a quotation on a later line", 'He said:\n"Task: ts-b54507"'],
  ["a quotation that the shell's quotes enclose", '"\\"Task: ts-b54507\\" is his"'],
  ["front matter", "---\ntask: ts-b54507\n---"],
  ["a line separator, which ends no line", "prose\u2028Task: ts-b54507"],
]

describe("the Task: line", () => {
  test.each(NAMED)(promised("task.B1", "the Task: line names a task: %s"), (_why, text, taskID) => {
    expect(parseTaskID(text)).toBe(taskID)
  })

  test.each(UNNAMED)(promised("task.B1", "the Task: line names no task: %s"), (_why, text) =>
    expect(parseTask(text)).toBeUndefined(),
  )
})

const letters = (alphabet: string, minLength: number, maxLength: number) =>
  fc.string({ unit: fc.constantFrom(...alphabet.split("")), minLength, maxLength })

const prefix = letters("abcdefghijklmnopqrstuvwxyzABCXYZ", 2, 12)
const hex = letters("0123456789abcdefABCDEF", 4, 12)
const taskID = fc.tuple(prefix, hex).map(([head, tail]) => `${head}-${tail}`)
const lineEnd = fc.constantFrom("\n", "\r\n", "\r")
/** Any text without a line that starts with `Task:`. */
const otherLine = fc.string({ unit: "grapheme" }).map((line) => `.${line.replace(/[\r\n]/g, " ")}`)
const otherLines = fc.array(otherLine, { maxLength: 6 })

describe("the Task: line, for any text", () => {
  test(
    promised(
      "task.B1",
      "the Task: line, for any text, names any id alone on its line, also inside the quotes of opencode run",
    ),
    () => {
      forAll(100, [taskID, otherLines, otherLines, lineEnd], (id, before, after, end) => {
        const text = [...before, `Task: ${id}`, ...after].join(end)
        expect(parseTaskID(text)).toBe(id.toLowerCase())
      })
      forAll(100, [taskID, otherLines], (id, before) => {
        expect(parseTaskID(`"${[...before, `Task: ${id}`].join("\n")}"`)).toBe(id.toLowerCase())
      })
    },
  )

  test(promised("task.B1", "the Task: line, for any text, names an id with a digit whatever title follows"), () => {
    const withDigit = taskID.filter((id) => /\d/.test(id))
    forAll(100, [withDigit, fc.string()], (id, title) => {
      expect(parseTaskID(`Task: ${id} ${title.replace(/[\r\n]/g, " ")}`)).toBe(id.toLowerCase())
    })
  })

  test(
    promised("task.B1", "the Task: line, for any text, names no id that goes on, is quoted or stands within a line"),
    () => {
      const more = fc.constantFrom("g", "h", "z", "_", "é", "字", "-x", ".x", "/x", "-9")
      forAll(100, [taskID, more], (id, tail) => expect(parseTaskID(`Task: ${id}${tail}`)).toBeUndefined())
      const inFront = fc.constantFrom("> ", ">", "- ", " ", "\t", "see ", "* ", "'", "`", "#", "| ")
      forAll(100, [taskID, inFront, otherLines], (id, mark, before) => {
        expect(parseTask([...before, `${mark}Task: ${id}`].join("\n"))).toBeUndefined()
      })
    },
  )
})

/** With backtracking each of these takes many minutes instead of milliseconds. */
const LONG: readonly (readonly [string, string])[] = [
  ["letters", `Task: ${"a".repeat(MEGABYTE)}`],
  ["hex digits", `Task: ts-${"a".repeat(MEGABYTE)}`],
  ["blanks after the label", `Task:${" ".repeat(MEGABYTE)}x`],
  ["blanks after an id", `Task: xy-abcd${" ".repeat(MEGABYTE)}x`],
  ["blanks after a heading", `# Planner${" ".repeat(MEGABYTE)}x`],
  ["hash signs", `# Planner ${"#".repeat(MEGABYTE)}x`],
  ["backticks", `${"`".repeat(MEGABYTE)}\u2028x`],
  ["labels", "Task:".repeat(MEGABYTE / 5)],
  ["labels on lines", "Task: \n".repeat(MEGABYTE / 7)],
  ["quotes", '"'.repeat(MEGABYTE)],
  ["line ends", "\r\n".repeat(MEGABYTE / 2)],
]

test.each(LONG)(promised("task.B1", "a megabyte of %s is read for a task in one pass"), (_what, text) => {
  expect(parseTask(text)).toBeUndefined()
  expect(parseTask(`${text}\n# Worker\nTask: ts-b54507`)?.taskID).toBe("ts-b54507")
})

const HEADINGS: readonly (readonly [why: string, text: string, role: Role | undefined])[] = [
  ["the heading", "# Planner\n\nTask: ts-b54507", "planner"],
  ["a heading below the task", "Task: ts-b54507\n\n# Planner\n", "planner"],
  ["the quotes of opencode run around the heading alone", '"# Planner"\nTask: ts-b54507', "planner"],
  ["a byte order mark", "\uFEFF# Planner\nTask: ts-b54507", "planner"],
  ["CRLF", "# Planner\r\n\r\nTask: ts-b54507\r\n", "planner"],
  ["the word agent", "# Planner Agent\n", "planner"],
  ["a closed heading", "# Planner #\n", "planner"],
  ["the first of two headings, the other way round", "# Worker\n\n# Planner\n", "worker"],
  ["a heading after a longer fence", "````\n```\n# Worker\n````\n# Planner", "planner"],
  ["a heading after code in a line", "```x``` is code\n# Planner", "planner"],
  ["a second-level heading", "## Planner\n", undefined],
  ["no blank after the mark", "#Planner\n", undefined],
  ["another case", "# planner\n", undefined],
  ["the title of a document", "# Planner for the release\n", undefined],
  ["a longer word", "# Planners\n", undefined],
  ["a quoted heading", "> # Planner\n", undefined],
  ["an indented heading", "  # Planner\n", undefined],
  ["a fence with an info string does not close", "```\n```js\n# Planner\n", undefined],
  ["a shorter fence does not close", "````\n```\n# Planner\n", undefined],
  ["another fence does not close", "~~~\n```\n# Planner\n", undefined],
]

describe("the role heading", () => {
  test.each(HEADINGS)(promised("task.B1", "the role heading reads the role from %s"), (_why, text, role) => {
    expect(parseRole(text)).toBe(role)
  })

  test(promised("task.B1", "the role heading gives task and role together, and no role without a task"), () => {
    const planner = { taskID: "ep-82985b", role: "planner", hasRoleHeading: true }
    expect(parseTask("# Planner\n\n```\nTask: EP-82985B\n```")).toEqual(planner)
    expect(parseTask("Task: ts-b54507")).toEqual({ taskID: "ts-b54507", role: "worker", hasRoleHeading: false })
    expect(parseTask("# Planner\n")).toBeUndefined()
  })

  test(promised("task.B1", "the role heading ignores a heading in a fence of any length and mark"), () => {
    forAll(100, [fc.constantFrom("`", "~"), fc.integer({ min: 3, max: 9 })], (character, length) => {
      const mark = character.repeat(length)
      expect(parseRole(`${mark}\n# Planner\n${mark}\n`)).toBeUndefined()
      expect(parseRole(`${mark}\n${mark}\n# Planner`)).toBe("planner")
    })
  })
})

test(promised("task.B1", "the user's text is every text part that a person wrote, and no other"), () => {
  const said = (text: string) => ({ type: "text", text })
  const written = [said("Look here"), { type: "file" }, said("Task: ts-b54507")]
  expect(collectUserText(written)).toBe("Look here\nTask: ts-b54507")
  const parts = [
    { ...said("Task: ts-aaaa11"), synthetic: true },
    { ...said("Task: ts-bbbb22"), ignored: true },
    { type: "reasoning", text: "Task: ts-cccc33" },
    { type: "tool", text: "Task: ts-dddd44" },
    { type: "text" },
  ]
  expect(parseTask(collectUserText(parts))).toBeUndefined()
  expect(collectUserText([])).toBe("")
})

test(promised("words.B3", "another agent's message is no text of the user's, what stands beside it is"), () => {
  const said = (text: string) => ({ type: "text", text })
  const envelope = '\n <c2c event="message" from="ada" alias="oc-1">\n</c2c>\nTask: ts-b54507'
  expect(collectUserText([said(envelope)])).toBe("")
  expect(collectUserText([said(envelope), said("Look here")])).toBe("Look here")
  const quoted = `It wrote:${envelope}`
  expect(collectUserText([said(quoted)])).toBe(quoted)
})

const ROLE_PROMPT = '# Worker\n\n```\nTask: ts-b54507\n```\n\nSay "hi".\n\n<!-- baton:brief -->'

/** The form in which OpenCode 1.2.15 and 1.18.33 send an argument that contains a blank. */
const inRunQuotes = (argument: string): string => `"${argument.replaceAll('"', '\\"')}"`

test.each([
  ["what follows the role prompt", `${ROLE_PROMPT}\n\nMake it fast.\n\nAnd small.\n`, "Make it fast.\n\nAnd small."],
  ["both", `Make it fast.\n${ROLE_PROMPT}\nAnd small.`, "Make it fast.\n\nAnd small."],
  ["nothing for the role prompt in the quotes of opencode run", inRunQuotes(ROLE_PROMPT), ""],
  ["what the user typed inside these quotes", inRunQuotes(`${ROLE_PROMPT}\nSay "hi".`), 'Say "hi".'],
  ["what the user typed in these quotes, without a role prompt", `${inRunQuotes('Say "hi".')}\n`, 'Say "hi".'],
  ["what comes on stdin behind the role prompt in these quotes", `${inRunQuotes(ROLE_PROMPT)}\nBe fast.`, "Be fast."],
  ["what stands in these quotes before a role prompt on stdin", `"Make it fast."\n${ROLE_PROMPT}`, '"Make it fast."'],
  ["a text that begins and ends with quotations, verbatim", '"a" is not "b"', '"a" is not "b"'],
  ["the same with CRLF", `${ROLE_PROMPT}\n\nMake it fast.`.replaceAll("\n", "\r\n"), "Make it fast."],
  ["a text without a role prompt, verbatim", "  Task: ts-b54507\r\nBe fast. ", "  Task: ts-b54507\r\nBe fast. "],
  ["a role prompt that has no end, verbatim", "# Worker\nTask: ts-b54507\n", "# Worker\nTask: ts-b54507\n"],
  ["an end that has no role prompt, verbatim", "x\n<!-- baton:brief -->\ny", "x\n<!-- baton:brief -->\ny"],
])(promised("compaction.C4", "the user's brief is %s"), (_what, text, brief) => expect(extractBrief(text)).toBe(brief))

test(promised("v2.B3", "the shortest message that sets a task gives that task and role"), () => {
  const stated = ROLES.map((role) => ({ taskID: "ts-b54507", role, hasRoleHeading: true }))
  for (const task of [...stated, { taskID: "ts-b54507", role: DEFAULT_ROLE, hasRoleHeading: false }])
    expect(parseTask(taskText(task))).toEqual(task)
})
