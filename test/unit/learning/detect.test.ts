import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { detect } from "../../../.opencode/baton/learning/detect.ts"
import { mayTeach } from "../../../.opencode/baton/learning/hooks.ts"
import { LANGUAGE_RULES } from "../../../.opencode/baton/learning/languages.ts"
import { LEARNING_TYPES } from "../../../.opencode/baton/learning/signals.ts"
import { promised } from "../../requirements.ts"
import { runs } from "../../support/effort.ts"
import {
  LANGUAGES,
  LEARNING_SETS,
  PEOPLE_SETS,
  readLearningSet,
  scoreLearningSet,
} from "../../support/learning-sets.ts"

/** "That's wrong?", "I like it!": common short replies may be in two of the sets. */
const SHORT_REPLIES = 10

const sentences = (text: string): string[] => detect(text).learnings.map(({ sentence }) => sentence)

/** Removes all negative lookaheads from the source of an expression. */
const withoutLookaheads = (source: string): string => {
  const start = source.indexOf("(?!")
  if (start < 0) return source
  let [end, depth] = [start, 0]
  do {
    if (source[end] === "\\") end += 1
    else if (source[end] === "(") depth += 1
    else if (source[end] === ")") depth -= 1
    end += 1
  } while (depth > 0)
  return withoutLookaheads(source.slice(0, start) + source.slice(end))
}

/** Texts like those that a pattern matches. fast-check knows neither lookaheads nor the ends of words. */
const textsLike = ({ source }: RegExp) => {
  const plain = withoutLookaheads(source)
  const [glued, spaced] = ["", " "].map((end) => new RegExp(plain.replaceAll("\\b", end), "u")) as [RegExp, RegExp]
  return fc.oneof(fc.stringMatching(glued), fc.stringMatching(spaced))
}

describe("the detector", () => {
  const kinds = LANGUAGES.flatMap((language) => LEARNING_TYPES.map((type) => ({ language, type })))
  test.each(kinds)(
    promised(
      "learning.A2",
      "a sentence that a rule of $language for a $type matches has a word for which the rules load",
    ),
    ({ language, type }) => {
      const signals = LANGUAGE_RULES[language].signals.filter((signal) => signal.type === type)
      for (const { pattern } of signals) {
        let matched = 0
        const isNoticed = fc.property(textsLike(pattern), (text) => {
          if (!pattern.test(text)) return true
          matched += 1
          return mayTeach(text)
        })
        fc.assert(isNoticed, { numRuns: runs(300) })
        expect(matched, pattern.source).toBeGreaterThan(10)
      }
    },
  )

  test.each(["Notebooks are stored without their output.", "reminderEmails are sent by the queue worker"])(
    promised("learning.A2", "%s is no note: the word for one ends there"),
    (text) => expect(detect(text).learnings).toEqual([]),
  )

  test.each([
    ["no, use the logger", "correction"],
    ["That's wrong, the API returns cents.", "correction"],
    ["this is not what I asked for, I wanted the parser's tests", "correction"],
    ["Instead, use the retry helper.", "correction"],
    ["We prefer early returns over nested ifs.", "correction"],
    ["Actually, it should return null.", "correction"],
    ["We decided to keep REST.", "decision"],
    ["From now on ask before adding a dependency.", "preference"],
    ["Avoid barrel files, they are slow.", "anti_pattern"],
    ["Follow the pattern in src/users.ts for endpoints.", "pattern"],
    ["Note that the staging database is wiped every night.", "insight"],
  ])(promised("learning.A2", "%s is a %s, kept as the whole sentence"), (text, type) => {
    expect(detect(`Thanks for that. ${text}`).learnings).toEqual([{ type, sentence: text }])
  })

  test.each([
    "Which framework is this?",
    "no problem",
    "it actually works",
    "piano use is unsupported",
    "Is that wrong?",
    "No, thanks.",
    "No use crying over it.",
  ])(promised("learning.A2", "%s teaches nothing: words end where they end, and an idiom is no order"), (text) => {
    expect(detect(text)).toEqual({ learnings: [], objects: false })
  })

  test.each([
    ["no, pnpm not npm", "correction"],
    ["No emojis in commit messages.", "preference"],
    ["this project uses poetry not pip", "correction"],
    ["Not what I meant, money is always an integer.", "correction"],
    ["nein, always use the factory", "correction"],
    ["Nein, nimm Vitest statt Jest.", "correction"],
    ["No, usa el logger en vez de console.log.", "correction"],
    ["Non, utilise le logger au lieu de console.log.", "correction"],
    ["不对，用 pnpm，不要用 npm", "correction"],
  ])(promised("people.B1", "%s is a %s"), (text, type) => {
    expect(detect(text).learnings).toEqual([{ type, sentence: text }])
  })

  test.each([
    ["a requirement", "Whenever you press Escape, all dialogs should close"],
    ["a requirement", "Note: the endpoint must return 404 for unknown ids."],
    ["the day's talk", "Important: the demo is at 5, it has to be ready"],
    ["a chat", "jane: we always squash\nbob: I prefer rebase over squash"],
    ["a chat with times", "Lisa, 10:41\nwe never use feature flags\n\nMarc, 10:42\nno, use them always"],
    ["a chat in Chinese", "小王：我们从不 rebase"],
    ["a telephone number", "Always call the pager on 555 010 9988 when prod breaks."],
    ["an address", "No, send it to maria@example.com instead of the list."],
    ["a person", "Never call Paul before nine."],
    ["this time", "No, use the other branch this time."],
  ])(promised("people.B2", "%s teaches nothing: %s"), (_what, text) => expect(sentences(text)).toEqual([]))

  test(promised("learning.A2", "an objection without content counts as one and is not kept"), () => {
    expect(detect("That's wrong.")).toEqual({ learnings: [], objects: true })
    const said = "No. Use tabs here, the linter wants them."
    expect(sentences(said)).toEqual([said])
  })

  test.each([
    ["a fence", "```\nNo, use tabs instead.\n```\nWhat is this?"],
    ["a quotation", "> No, use tabs instead.\n\nHm."],
    ["quotes", 'Change the label to "No, use tabs instead".'],
    [
      "a long quotation",
      `The reviewer wrote: "${"We looked at it once more. ".repeat(15)}Never mock the database in tests."`,
    ],
    [
      "quotes over lines",
      'Answer this mail, please. "Hi,\nwe looked at it.\nNever mock the database in tests.\nRegards"',
    ],
    ["a quoted rule and a question", 'Is this good? "Never mock the database in tests.\nAlways use named exports."'],
    ["curly quotes over lines", "He wrote: “Never mock the database in tests.\nAlways use named exports.” What now?"],
    ["a log", "2026-01-01 10:00:00 ERROR no, use tabs instead\nHelp me."],
    ["a chat", "Tom: no, use tabs instead"],
    ["an e-mail", "From: a@b.c\n\nNo, use tabs instead."],
    ["a tagged block", "<reminder>\nNo, use tabs instead.\n</reminder>"],
    ["a task's brief", "Task: ts-abc123\nAlways use tabs instead of spaces."],
    ["a handoff's draft", "Continuing work from session ses_abcdefghijklmnop.\n\nAlways use tabs."],
    ["a language without rules", "Não, use a função que já existe no módulo em vez de outra."],
  ])(promised("learning.A1", "nothing is learned from %s"), (_what, text) => expect(sentences(text)).toEqual([]))

  test.each([
    ["a quotation mark that nothing closes", 'The 5" screen is "small.\nAlways use named exports.'],
    ["marks in two lines that are closed there", 'Call it "a".\nAlways use named exports.\nAnd this one "b".'],
  ])(promised("learning.A1", "what stands behind %s is the user's"), (_what, text) =>
    expect(sentences(text)).toEqual(["Always use named exports."]),
  )

  test(promised("learning.A1", "the quotes that opencode run puts around a message are not the user's"), () => {
    expect(sentences('"No, use \\"strict\\" mode for the parser."')).toEqual(['No, use "strict" mode for the parser.'])
  })

  test(promised("learning.E2", "a message of 1 MB is looked at in linear time, its own words included"), () => {
    const paste = `${"at run (/app/index.js:1:2) no, use tabs ".repeat(50)}\n`.repeat(500)
    const said = "No, use the streaming parser."
    expect(sentences(`${said}\n\n\`\`\`\n${paste}\`\`\`\n`)).toEqual([said])
    for (const text of [
      "no, ".repeat(250_000),
      "`".repeat(1_000_000),
      "a. ".repeat(330_000),
      "\n".repeat(1_000_000),
      '"a\n“b\n'.repeat(50_000),
    ])
      expect(sentences(text)).toEqual([])
  })
})

describe("the labelled messages", () => {
  test.each(LEARNING_SETS)(
    promised("learning.A3", "in the %s set of labelled messages 95 % of the learnings are right, 60 % are found"),
    (name) => {
      const { precision, recall, wrong } = scoreLearningSet(name)
      expect(precision, wrong.join("\n")).toBeGreaterThanOrEqual(0.95)
      expect(recall).toBeGreaterThanOrEqual(0.6)
    },
  )

  const perLanguage = PEOPLE_SETS.flatMap((set) => LANGUAGES.map((language) => ({ set, language })))
  test.each(perLanguage)(
    promised(
      ["people.B1", "people.B2"],
      "in the $set set in $language nine of ten learnings are right, half are found",
    ),
    ({ set, language }) => {
      const { precision, recall, wrong, missed } = scoreLearningSet(set, language)
      expect(precision, wrong.join("\n")).toBeGreaterThanOrEqual(0.9)
      expect(recall, missed.join("\n")).toBeGreaterThanOrEqual(language === "en" ? 0.6 : 0.5)
    },
  )

  test(
    promised("people.B2", "the labelled messages of people are 400, half of which teach nothing, in each language"),
    () => {
      const messages = PEOPLE_SETS.flatMap(readLearningSet)
      expect(messages.length).toBeGreaterThanOrEqual(400)
      for (const language of LANGUAGES) {
        const own = messages.filter(({ lang }) => lang === language)
        expect(own.filter(({ learn }) => learn.length === 0).length, language).toBeGreaterThanOrEqual(
          own.length / 2 - 1,
        )
      }
    },
  )

  test(promised("learning.A3", "no two sets share a message"), () => {
    const texts = [...LEARNING_SETS, ...PEOPLE_SETS].flatMap((name) => readLearningSet(name).map(({ text }) => text))
    expect(texts.length - new Set(texts).size).toBeLessThanOrEqual(SHORT_REPLIES)
  })
})
