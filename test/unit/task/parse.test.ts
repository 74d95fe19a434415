import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { parseTask, parseTaskID } from "../../../.opencode/baton/task/parse.ts"
import { promised } from "../../requirements.ts"
import { runs } from "../../support/effort.ts"

const MEGABYTE = 1_048_576

const NAMED: readonly (readonly [why: string, text: string, taskID: string])[] = [
  ["a prog task", "Task: ts-b54507", "ts-b54507"],
  ["a prog epic in capitals", "Task: EP-82985B", "ep-82985b"],
  ["mixed case", "Task: Ts-B5a5C7", "ts-b5a5c7"],
  ["the shortest form", "Task: ab-12cd", "ab-12cd"],
  ["the longest hex part", "Task: ts-0123456789ab", "ts-0123456789ab"],
  ["a long prefix", "Task: project-1a2b", "project-1a2b"],
  ["digits alone", "Task: proj-1234 log in with a key", "proj-1234"],
  ["hex letters alone after prog's prefix", "Task: ts-abcdef", "ts-abcdef"],
  ["hex letters alone after prog's prefix, with a title", "Task: ep-facade rework it", "ep-facade"],
  ["hex letters alone after another prefix, on a line of its own", "Task: xy-abcd", "xy-abcd"],
  ["hex letters alone, closed by the quote of the shell", '"Do this.\nTask: xy-abcd"', "xy-abcd"],
  ["hex letters alone, with blanks behind", "Task: xy-abcd \t", "xy-abcd"],
  ["no blank", "Task:ts-b54507", "ts-b54507"],
  ["several blanks", "Task: \t ts-b54507", "ts-b54507"],
  ["a no-break space", "Task:\u00a0ts-b54507", "ts-b54507"],
  ["a title behind", "Task: ts-b54507 fix the parser", "ts-b54507"],
  ["a title after a dash", "Task: ts-b54507 - fix the parser", "ts-b54507"],
  ["a title after a colon", "Task: ts-b54507: fix the parser", "ts-b54507"],
  ["a title in brackets", "Task: ts-b54507 (fix the parser)", "ts-b54507"],
  ["a dash and no word", "Task: ts-b54507- fix the parser", "ts-b54507"],
  ["a full stop", "Task: ts-b54507.", "ts-b54507"],
  ["a comma", "Task: ts-b54507, then rest", "ts-b54507"],
  ["a backslash-n that no shell interpreted", "Task: ts-b54507\\nFix it", "ts-b54507"],
  ["a fence", "# Worker\n\n```\nTask: ts-b54507\n```\n", "ts-b54507"],
  ["a fence that never ends", "```\nTask: ts-b54507", "ts-b54507"],
  ["CRLF", "# Worker\r\n\r\nTask: ts-b54507\r\nFix it\r\n", "ts-b54507"],
  ["CR alone", "Hello\rTask: ts-b54507\rFix it", "ts-b54507"],
  ["the quotes of opencode run", '"Task: ts-b54507"', "ts-b54507"],
  ["the quotes of opencode run around several lines", '"# Worker\n\nTask: ts-b54507\nSay \\"hi\\""', "ts-b54507"],
  ["the quotes of opencode run and stdin", '"Please do"\nTask: ts-b54507\n', "ts-b54507"],
  ["a byte order mark", "\uFEFFTask: ts-b54507", "ts-b54507"],
  ["a byte order mark inside the quotes", '"\uFEFFTask: ts-b54507"', "ts-b54507"],
  ["the first of two", "Task: ts-aaaa11\nTask: ts-bbbb22", "ts-aaaa11"],
  ["the first that is one", "Task: re-added tests\nTask: {{task_id}}\nTask: ts-b54507", "ts-b54507"],
  ["its own line after a quoted message", "> Task: ts-aaaa11\n\nTask: ts-b54507", "ts-b54507"],
  ["its own line before a pasted message", "Task: ts-b54507\n\nThey got:\nTask: ts-aaaa11", "ts-b54507"],
]

const UNNAMED: readonly (readonly [why: string, text: string])[] = [
  ["nothing", ""],
  ["words made of hex letters", "Task: re-added tests"],
  ["words made of hex letters, with a full stop", "Task: re-added."],
  ["more such words", "Task: de-faced pages"],
  ["more such words in capitals", "Task: CO-DECADE plan"],
  ["such words with a colon", "Task: be-dead: no"],
  ["a 13th hex digit", "Task: ts-0123456789abc"],
  ["three hex digits", "Task: ts-123"],
  ["one letter", "Task: t-b54507"],
  ["no prefix", "Task: b54507"],
  ["a letter that is no hex digit", "Task: ts-b5450g"],
  ["more word characters", "Task: ts-b54507_old"],
  ["more word characters of another script", "Task: ts-b54507é"],
  ["a combining mark", "Task: ts-b54507\u0301"],
  ["a dash and a word", "Task: ts-abcd-more"],
  ["another number behind", "Task: cve-2024-12345"],
  ["a file name", "Task: ts-b54507.md"],
  ["a path", "Task: ts-b54507/notes"],
  ["look-alike letters", "Task: t\u017f-b54507"],
  ["full-width digits", "Task: ts-１２３４"],
  ["a placeholder", "Task: {{task_id}}"],
  ["an id on the next line", "Task:\nts-b54507"],
  ["prose", "Please look at Task: ts-b54507"],
  ["prose without a label", "ts-b54507 is the one"],
  ["a markdown quote", "> Task: ts-b54507"],
  ["a nested quote", "> > Task: ts-b54507"],
  ["a fence inside a quote", "> ```\n> Task: ts-b54507\n> ```"],
  ["a quotation on a later line", 'He said:\n"Task: ts-b54507"'],
  ["a quotation that the shell's quotes enclose", '"\\"Task: ts-b54507\\" is his"'],
  ["an indent", "They got:\n  Task: ts-b54507"],
  ["a code block", "They got:\n\n    Task: ts-b54507"],
  ["a tab", "\tTask: ts-b54507"],
  ["a list", "- Task: ts-b54507"],
  ["a comment", "<!-- Task: ts-b54507 -->"],
  ["front matter", "---\ntask: ts-b54507\n---"],
  ["another label", "Subtask: ts-b54507"],
  ["a line separator, which ends no line", "prose\u2028Task: ts-b54507"],
]

describe("the Task: line", () => {
  test.each(NAMED)(promised("task.B1", "names a task: %s"), (_why, text, taskID) => {
    expect(parseTaskID(text)).toBe(taskID)
  })

  test.each(UNNAMED)(promised("task.B1", "names no task: %s"), (_why, text) => {
    expect(parseTask(text)).toBeUndefined()
  })
})

const letters = (alphabet: string, minLength: number, maxLength: number) =>
  fc.string({ unit: fc.constantFrom(...alphabet.split("")), minLength, maxLength })

const prefix = letters("abcdefghijklmnopqrstuvwxyzABCXYZ", 2, 12)
const hex = letters("0123456789abcdefABCDEF", 4, 12)
const taskID = fc.tuple(prefix, hex).map(([head, tail]) => `${head}-${tail}`)
const lineEnd = fc.constantFrom("\n", "\r\n", "\r")
/** Any text without a line that starts with `Task:`. */
const otherLines = fc.array(
  fc.string({ unit: "grapheme" }).map((line) => `.${line.replace(/[\r\n]/g, " ")}`),
  { maxLength: 6 },
)

describe("the Task: line, for any text", () => {
  test(promised("task.B1", "names any id that stands alone on its line, in lower case, wherever the line is"), () => {
    fc.assert(
      fc.property(taskID, otherLines, otherLines, lineEnd, (id, before, after, end) => {
        const text = [...before, `Task: ${id}`, ...after].join(end)
        expect(parseTaskID(text)).toBe(id.toLowerCase())
      }),
    )
  })

  test(promised("task.B1", "names the same id inside the quotes of opencode run"), () => {
    fc.assert(
      fc.property(taskID, otherLines, (id, before) => {
        expect(parseTaskID(`"${[...before, `Task: ${id}`].join("\n")}"`)).toBe(id.toLowerCase())
      }),
    )
  })

  test(promised("task.B1", "names an id with a digit whatever title follows"), () => {
    const withDigit = taskID.filter((id) => /\d/.test(id))
    fc.assert(
      fc.property(withDigit, fc.string(), (id, title) => {
        expect(parseTaskID(`Task: ${id} ${title.replace(/[\r\n]/g, " ")}`)).toBe(id.toLowerCase())
      }),
    )
  })

  test(promised("task.B1", "names no id that goes on with a word character"), () => {
    const more = fc.constantFrom("g", "h", "z", "_", "é", "字", "-x", ".x", "/x", "-9")
    fc.assert(
      fc.property(taskID, more, (id, tail) => {
        expect(parseTaskID(`Task: ${id}${tail}`)).toBeUndefined()
      }),
    )
  })

  test(promised("task.B1", "names nothing behind a quote mark or within a line"), () => {
    const inFront = fc.constantFrom("> ", ">", "- ", " ", "\t", "see ", "* ", "'", "`", "#", "| ")
    fc.assert(
      fc.property(taskID, inFront, otherLines, (id, mark, before) => {
        expect(parseTask([...before, `${mark}Task: ${id}`].join("\n"))).toBeUndefined()
      }),
    )
  })

  test(promised("task.B1", "gives a canonical id or nothing, and never throws"), () => {
    const hostile = fc.oneof(
      fc.string({ unit: "binary" }),
      fc.string({ unit: fc.constantFrom("Task:", " ", "\t", '"', "\n", "`", "~", "#", "-", "a", "9", "ts-", "é") }),
    )
    fc.assert(
      fc.property(hostile, (text) => {
        const found = parseTask(text)
        expect(found === undefined || /^[a-z]{2,}-[0-9a-f]{4,12}$/.test(found.taskID)).toBe(true)
      }),
      { numRuns: runs(500) },
    )
  })
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

test.each(LONG)(promised("task.B1", "reads a megabyte of %s in one pass"), (_what, text) => {
  expect(parseTask(text)).toBeUndefined()
  expect(parseTask(`${text}\n# Worker\nTask: ts-b54507`)?.taskID).toBe("ts-b54507")
})
