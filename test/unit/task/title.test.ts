import { readFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { titleFrom } from "../../../.opencode/baton/task/title.ts"
import { promised } from "../../requirements.ts"
import { REPOSITORY } from "../../support/opencode/opencode-binary.ts"

type Labelled = { language: string; text: string; title: string | null }

const LABELLED = readFileSync(join(REPOSITORY, "test/fixtures/titles.jsonl"), "utf8")
  .trim()
  .split("\n")
  .map((line) => JSON.parse(line) as Labelled)

describe("the title of a task that a message sets", () => {
  test.each(LABELLED)(promised("queue.A4", "$language $text has the title $title"), ({ text, title }) => {
    expect(titleFrom(text) ?? null).toBe(title)
  })

  test(promised("queue.A4", "the labelled messages are in 11 languages at least"), () => {
    expect(LABELLED.length).toBeGreaterThanOrEqual(60)
    expect(new Set(LABELLED.map(({ language }) => language)).size).toBeGreaterThanOrEqual(11)
  })

  test(promised("queue.A4", "a long title is cut at a blank, or where its script has none"), () => {
    expect(titleFrom(`${"word ".repeat(40)}end.`)).toBe(`${"word ".repeat(14)}word…`)
    expect(titleFrom("改行".repeat(60))).toBe(`${"改行".repeat(20)}…`)
  })

  test.each([
    ["marks of comments", "<!--".repeat(250_000)],
    ["tags", "<a>".repeat(300_000)],
    ["front matter", `---\n${"a: b\n".repeat(200_000)}`],
    ["blanks", " ".repeat(1_000_000)],
    ["stops", ". ".repeat(500_000)],
  ])(promised("queue.A4", "a megabyte of %s takes no time worth telling"), (_what, text) => {
    expect(titleFrom(`${text}x`)?.length ?? 0).toBeLessThanOrEqual(80)
  })
})
