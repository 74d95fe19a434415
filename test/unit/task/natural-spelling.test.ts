import { readFileSync } from "node:fs"
import { join } from "node:path"
import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { mayNameTask } from "../../../.opencode/baton/compaction/hooks.ts"
import {
  mentionedTasks,
  namesOnlyATask,
  namesTask,
  parseNaturalTask,
  parseTask,
  quoteTaskLines,
} from "../../../.opencode/baton/task/parse.ts"
import { promised } from "../../requirements.ts"
import { forAll } from "../../support/for-all.ts"
import { LEARNING_SETS, readLearningSet } from "../../support/learning-sets.ts"
import { REPOSITORY } from "../../support/opencode/opencode-binary.ts"

/** Texts of one line, between bars. */
const LINES = `
  task: ts-b54507 | Task ts-b54507 | **Task:** ts-b54507 | **Task**: ts-b54507 | **Task: ts-b54507** | TASK: TS-B54507
  TASK:ts-b54507 | Task : ts-b54507 | Task\uFF1Ats-b54507 | task=ts-b54507 | Task: \`ts-b54507\` | task id: ts-b54507
  Your task is ts-b54507. | Epic ts-b54507 | Work on ts-b54507 | work on ts-b54507. | "Work on ts-b54507"
  Work on task \`ts-b54507\`: | Please work on ts-b54507! | Work on ts-b54507, please. | Can you work on ts-b54507?
  Could you please continue with ts-b54507? | Let's start with ts-b54507 | Next, pick up the task ts-b54507
  Resume ts-b54507 | keep working on ts-b54507 now | do ts-b54507 | ts-b54507
`

const NAMED: readonly string[] = [
  ...LINES.trim().split(/ *[|\n] */),
  "Now continue ts-b54507 \t",
  "  `TS-B54507`.\n",
  "Work on ts-b54507\nNever touch the lexer.",
  "Fix the lexer first\nwork on ts-b54507",
  "The lexer was fixed in the last release, as was the parser.\nwork on ts-b54507",
  "the lexer was fixed in the last release, and so was the parser\ntask: ts-b54507",
  "Work on ts-b54507\r\nTask ts-b54507",
  "# Worker\n\nWork on ts-b54507\n",
  "> Work on ts-aaaa11\n\nWork on ts-b54507",
  "```\nwork on ts-aaaa11\n```\nWork on ts-b54507",
]

const UNNAMED: readonly (readonly [why: string, text: string])[] = [
  ["a question", "Work on ts-b54507?"],
  ["a question about the task", "Task ts-b54507?"],
  ["a title behind it", "task: ts-b54507 fix the parser"],
  ["another verb", "Review ts-b54507"],
  ["a denial", "Do not work on ts-b54507"],
  ["a quotation", "> Task ts-b54507"],
  ["a quotation in quotes on a later line", 'He said:\n"Work on ts-b54507"'],
  ["an indented line", "See:\n    task: ts-b54507"],
  ["an item of a list", "- Task ts-b54507"],
  ["an item of a list with a star", "See:\n* Task ts-b54507"],
  ["a row of a table", "| Task | ts-b54507 |"],
  ["a heading", "## Task ts-b54507"],
  ["a fence", "```\nWork on ts-b54507\n```"],
  ["a fence around an id alone", "```\nts-b54507\n```"],
  ["a fence that never ends", "~~~\ntask: ts-b54507"],
  ["two tasks", "Task ts-b54507\nTask ts-0aa111"],
  ["an id among other lines", "Which of these is blocked?\nts-b54507"],
  ["two ids", "ts-b54507\nts-0aa111"],
  ["an id with a question mark", "ts-b54507?"],
  ["a prefix that is not prog's", "Work on ab-12cd34"],
  ["more than an id", "Work on ts-b54507_old"],
  ["a file", "Work on ts-b54507.md"],
  ["look-alike letters", "ta\u017fk: ts-b54507"],
  ["a look-alike id", "Work on t\u017f-b54507"],
  ["the end of wrapped prose", "The release is frozen until Friday, so I would rather have you\nwork on ts-b54507"],
]

describe("a natural spelling", () => {
  test.each(NAMED)(promised("task.C1", "a natural spelling names a task: %j"), (text) => {
    expect(parseNaturalTask(text)?.taskID).toBe("ts-b54507")
  })

  test.each(UNNAMED)(promised("task.C1", "a natural spelling names none in %s"), (_why, text) => {
    expect(parseNaturalTask(text)).toBeUndefined()
  })

  test(
    promised(
      "task.C1",
      "a natural spelling takes the role of a heading, tells an id alone, and gives way to the exact line",
    ),
    () => {
      const planner = { taskID: "ep-82985b", role: "planner", hasRoleHeading: true, isBare: false }
      expect(parseNaturalTask("# Planner\n\nEpic ep-82985b")).toEqual(planner)
      expect(parseNaturalTask("ts-b54507")).toMatchObject({ role: "worker", hasRoleHeading: false, isBare: true })
      expect(namesTask("Work on ts-b54507\nTask: ts-0aa111", "ts-0aa111")).toBe(true)
      expect(namesTask("Work on ts-b54507\nTask: ts-0aa111", "ts-b54507")).toBe(false)
      expect(namesTask("Work on ts-b54507", "ts-b54507")).toBe(true)
    },
  )

  test(
    promised(
      ["task.B1", "task.C1"],
      "a natural spelling escapes in no form the look at a message, nor does the exact line",
    ),
    () => {
      const mark = fc.constantFrom("Task:", "Task:", "task:", "TASK:", "Task :", "**Task**:", "Task\uFF1A")
      const id = fc.tuple(fc.constantFrom("ts-", "EP-", "abc-"), fc.stringMatching(/^[0-9a-f]{3,11}[0-9]$/))
      const exact = fc.tuple(mark, id).map(([task, [prefix, hex]]) => `${task} ${prefix}${hex}`)
      forAll(100, [fc.constantFrom("", "\uFEFF", '"', "a\r\n", "```\n"), exact], (before, task) => {
        fc.pre(parseTask(before + task) !== undefined)
        expect(mayNameTask(before + task)).toBe(true)
      })
      const line = fc
        .tuple(
          fc.constantFrom(...NAMED),
          fc.constantFrom("ts-", "TS-", "ep-"),
          fc.stringMatching(/^[0-9a-fA-F]{4,12}$/),
        )
        .map(([form, prefix, hex]) => form.replace(/ts-b54507/gi, prefix + hex))
      forAll(100, [fc.constantFrom("", "\uFEFF", '"', "a\r\n"), line], (before, form) => {
        fc.pre(parseNaturalTask(before + form) !== undefined)
        expect(mayNameTask(before + form)).toBe(true)
      })
    },
  )

  test.each([
    ["blanks", `Task${" ".repeat(1_048_576)}x`],
    ["stars", `Task ${"*".repeat(1_048_576)}x`],
    ["lines that name it", "Work on ts-b54507\n".repeat(60_000)],
  ])(promised("task.C1", "a natural spelling is looked for in a megabyte of %s in one pass"), (_what, text) => {
    expect(parseNaturalTask(`${text}\nWork on ts-b54507`)?.taskID).toBe("ts-b54507")
  })
})

type Mention = { binds: boolean; language: string; text: string }

/** Messages that mention ts-b54507, and whether they take it up. */
const MENTIONS = readFileSync(join(REPOSITORY, "test/fixtures/task-mentions.jsonl"), "utf8")
  .trim()
  .split("\n")
  .map((line) => JSON.parse(line) as Mention)

describe("a sentence with an id", () => {
  test.each(MENTIONS.filter(({ binds }) => binds))(
    promised("queue.A5", "a sentence with an id takes it up ($language): $text"),
    ({ text }) => {
      expect(parseNaturalTask(text)?.taskID).toBe("ts-b54507")
      expect(mayNameTask(text)).toBe(true)
    },
  )

  test.each(MENTIONS.filter(({ binds }) => !binds))(
    promised("queue.A5", "a sentence with an id binds no task ($language): $text"),
    ({ text }) => {
      expect(parseNaturalTask(text)).toBeUndefined()
      expect(parseNaturalTask(`"${text}"`), "as an argument of opencode run").toBeUndefined()
    },
  )

  test(promised("queue.A5", "a sentence with an id is labelled in 11 languages, 40 times each at least"), () => {
    for (const wanted of [true, false]) {
      const labelled = MENTIONS.filter(({ binds }) => binds === wanted)
      expect(labelled.length).toBeGreaterThanOrEqual(40)
      expect(new Set(labelled.map(({ language }) => language)).size).toBeGreaterThanOrEqual(11)
    }
  })

  test(
    promised(
      "queue.A5",
      "a sentence with an id that says more than the name is kept as the user's words, and an agent's is quoted",
    ),
    () => {
      expect(namesOnlyATask("Work on ts-b54507.")).toBe(true)
      for (const { text } of MENTIONS.filter(({ binds }) => binds)) {
        expect(parseNaturalTask(quoteTaskLines(text)), text).toBeUndefined()
        if (text.length > 60) expect(namesOnlyATask(text), text).toBe(false)
      }
    },
  )

  test(promised("queue.A5", "a sentence with an id names none in what Baton itself says, which shows titles"), () => {
    expect(parseNaturalTask("/task\n\nThis session's task: ts-0aa111, A. Work on ts-b54507. (open)")).toBeUndefined()
  })

  test.each([
    ["sentences", "Work on ts-b54507. ".repeat(55_000)],
    ["fillers", `${"mach bitte ".repeat(95_000)}ts-b54507`],
    ["leads", `${"ok, now, please ".repeat(65_000)}ts-b54507`],
    ["quotes", `${'"'.repeat(1_000_001)} ts-b54507`],
    ["code marks", `x${"`".repeat(1_000_001)} ts-b54507`],
  ])(
    promised("queue.A5", "a sentence with an id is looked for in a line of a megabyte of %s in one pass"),
    (_what, text) => {
      expect(parseNaturalTask(`${text}\nWork on ts-b54507`)?.taskID).toBe("ts-b54507")
    },
  )
})

test.each([
  ["PROJ-1234 fix the login redirect", "proj-1234"],
  ["GH-1024: flaky test", "gh-1024"],
  ["ABC-12345", "abc-12345"],
])(promised("queue.A5", "Task: %s asks the ledger for %s"), (line, taskID) => {
  expect(parseTask(`Task: ${line}`)).toBeUndefined()
  expect(parseNaturalTask(`Task: ${line}`)?.taskID).toBe(taskID)
  expect(parseTask(`Task: ${line}\nTask: ts-b54507`)?.taskID, "prog's own id counts").toBe("ts-b54507")
  expect(parseNaturalTask(`Task: ${line}\nWork on ts-b54507.`)?.taskID).toBe("ts-b54507")
})

test(
  promised("queue.A5", "the ids that a message mentions are the first three of prog's, outside quotations and code"),
  () => {
    const text =
      "See ts-0aa111 and TS-0AA111, ts-b54507.md, ab-12cd34 or ep-0bb222.\n> ts-0cc333\n```\nts-0dd444\n```\n"
    expect(mentionedTasks(`${text}- ts-0ee555\n(ts-0ff666)`)).toEqual(["ts-0aa111", "ep-0bb222", "ts-0ee555"])
  },
)

/** A message with the id of a known task added in a sentence. One word and an id, as in "Continue ts-b54507", are a naming. */
const WITH_ID: readonly ((text: string) => string)[] = [
  (text) => text,
  (text) => (text.includes(" ") ? `${text} ts-b54507` : text),
  (text) => `${text} (ts-b54507)`,
  (text) => `${text} This is about ts-b54507.`,
  (text) => `As in ts-b54507: ${text}`,
  (text) => `${text}\nSee ts-b54507 for more.`,
]

test.each(LEARNING_SETS)(promised("task.C1", "no message of the %s set names a task"), (set) => {
  const texts = readLearningSet(set)
    .map(({ text }) => text)
    .filter((text) => parseTask(text) === undefined)
  expect(texts.length).toBeGreaterThan(200)
  expect(texts.filter(mayNameTask).length, "for these the feature is loaded").toBeLessThanOrEqual(1)
  const named = texts.flatMap((text) => WITH_ID.map((add) => add(text))).filter((text) => parseNaturalTask(text))
  expect(named).toEqual([])
})
