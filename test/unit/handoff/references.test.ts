import fc from "fast-check"
import { describe, expect, test } from "vitest"
import type { FileReference } from "../../../.opencode/baton/handoff/references.ts"
import { closeFence, findCode, parseReferences, renderReference } from "../../../.opencode/baton/handoff/references.ts"
import { promised } from "../../requirements.ts"
import { forAll } from "../../support/for-all.ts"

const MEGABYTE = 1_048_576
/** The pattern in the original plugin's docs. */
const DOCUMENTED = /(?<![\w`])@(\.?[^\s`,.]*(?:\.[^\s`,.]+)*)/g

const codeIn = (text: string): string[] => findCode(text).map(({ start, end }) => text.slice(start, end))
const pathsIn = (text: string): string[] => parseReferences(text).map(({ path }) => path)
const fill = (piece: string): string => piece.repeat(Math.ceil(MEGABYTE / piece.length)).slice(0, MEGABYTE)

/** A reference as `path`, or as `path lines 3-4`. */
const shown = ({ path, lines }: FileReference): string =>
  lines ? `${path} lines ${lines.first}-${lines.last ?? ""}` : path

const READ: readonly (readonly [text: string, ...references: string[]])[] = [
  ["see @a.ts, @b.ts; @c.ts! @d.ts? @e.ts: and", "a.ts", "b.ts", "c.ts", "d.ts", "e.ts"],
  ["(@a.ts) [@b.ts] {@c.ts} <@d.ts>", "a.ts", "b.ts", "c.ts", "d.ts"],
  [`"@a.ts" '@b.ts' **@c.ts** “@d.ts”`, "a.ts", "b.ts", "c.ts", "d.ts"],
  ["(see (@a.ts).)", "a.ts"],
  ["@a.ts... @b.ts...and @c.ts… then", "a.ts", "b.ts", "c.ts"],
  ["@app/(auth)/page.tsx", "app/(auth)/page.tsx"],
  ["(@app/(auth))", "app/(auth)"],
  ["@pages/[id].tsx @pages/[id]", "pages/[id].tsx", "pages/[id]"],
  ["@app/[...slug]/page.tsx @app/[[...slug]].tsx", "app/[...slug]/page.tsx", "app/[[...slug]].tsx"],
  ["@app/(..)photo/x.tsx", "app/(..)photo/x.tsx"],
  ["@./a.ts @../b.ts @../../c.ts @a/../d.ts", "./a.ts", "../b.ts", "../../c.ts", "a/../d.ts"],
  ["@.gitignore @.github/workflows/ci.yml", ".gitignore", ".github/workflows/ci.yml"],
  ["@/etc/hosts @Makefile @a.b.c.ts", "/etc/hosts", "Makefile", "a.b.c.ts"],
  ["@a.ts:10", "a.ts lines 10-"],
  ["(@a.ts:10-20).", "a.ts lines 10-20"],
  ["@a.ts:20-10", "a.ts lines 10-20"],
  ["@a.ts:10:5", "a.ts lines 10-"],
  ["@a.ts#L10 @a.ts#L10-L20 @a.ts#L1-2", "a.ts lines 10-", "a.ts lines 10-20", "a.ts lines 1-2"],
  ["@a.ts:0 @b.ts:5-0", "a.ts:0", "b.ts:5-0"],
  ['@"a b.ts" @"c d.ts":3-4, @"e f.ts"#L7', "a b.ts", "c d.ts lines 3-4", "e f.ts lines 7-"],
  [String.raw`@"a\"b\\c\n.ts" @"\x60.ts" @"C:\\x"`, 'a"b\\c\n.ts', "`.ts", "C:\\x"],
  ['@"a b @c.ts', "c.ts"],
  ['@"" @a.ts', "a.ts"],
  ["@a.ts @a.ts @./a.ts", "a.ts", "./a.ts"],
  ["@@types/node", "@types/node"],
  ["日本語@a.ts 한국어@b.ts ไทย@c.ts 𠮷@d.ts", "a.ts", "b.ts", "c.ts", "d.ts"],
  ["「@a.ts」 （@b.ts）。 @c.ts、", "a.ts", "b.ts", "c.ts"],
  ["🎉@a.ts ⚠️@b.ts —@c.ts", "a.ts", "b.ts", "c.ts"],
  ["@ärger/größe.ts @名前.ts", "ärger/größe.ts", "名前.ts"],
  ["a\n@b.ts\r\n\t@c.ts", "b.ts", "c.ts"],
  ["`@a.ts` @b.ts `c`", "b.ts"],
  ["```\n@a.ts\n```\n@b.ts", "b.ts"],
  ["- ```\n  @a.ts\n\n  @b.ts\n  ```\n- @c.ts", "c.ts"],
  ["a ` b @c.ts", "c.ts"],
]

const IGNORED: readonly (readonly [why: string, text: string])[] = [
  ["an e-mail address", "me@example.com <you@example.com> first.last@example.com"],
  ["an e-mail address with letters of other alphabets", "josé@example.com почта@example.com 𝐚@example.com"],
  ["an e-mail address with a combining accent", "jose\u0301@example.com"],
  ["a name joined by an underscore or a digit", "a_@b.ts 1@b.ts"],
  ["a lone mark", "@ a, @, @. @) @` @"],
  ["a mark at the end", "a @"],
  ["a code span", "`@a.ts` and ``x @b.ts ` @c.ts``"],
  ["a backtick before it", "`@a.ts"],
  ["a fence", "~~~\n@a.ts\n\n@b.ts\n~~~"],
  ["a fence that never ends", "```ts\n@a.ts"],
  ["a quote that never ends", '@"a.ts\n"'],
]

describe("file references", () => {
  test.each(READ)(promised("handoff.C1", "file references are read: %j"), (text, ...references) => {
    expect(parseReferences(text).map(shown)).toEqual(references)
  })

  test.each(IGNORED)(promised("handoff.C1", "file references are not made of %s"), (_why, text) => {
    expect(parseReferences(text)).toEqual([])
  })

  test(promised("handoff.C1", "file references name every real path that the documented pattern finds"), () => {
    const letter = fc.constantFrom(..."abzAZ09_-+=~#$%&é漢|^!;:'".split(""))
    const word = fc.array(letter, { minLength: 1, maxLength: 6 }).map((letters) => `${letters.join("")}x`)
    const name = fc.oneof(
      word,
      fc.tuple(word, word).map((words) => words.join(".")),
      word.map((inner) => `.${inner}`),
      word.map((inner) => `(${inner})`),
      word.map((inner) => `[${inner}].ts`),
    )
    const path = fc
      .tuple(fc.constantFrom("", "./", "../", "/"), fc.array(name, { maxLength: 3 }), word)
      .map(([start, folders, file]) => `${start}${[...folders, file].join("/")}`)
    const mark = fc.constantFrom(..." \n\t,a`".split(""))
    const sign = fc.constantFrom("..", ", ", ". ", ") ", " (", ".\n", " - ", " ` ", "... ", "...and ")
    const between = fc.oneof(mark, sign)
    forAll(5_000, [fc.array(fc.tuple(between, path), { minLength: 1, maxLength: 6 }), between], (named, end) => {
      const text = named.map(([before, each]) => `${before}@${each}`).join("") + end
      const real = new Set(named.map(([, each]) => each))
      const withoutCode = text.split("`").length > 2 ? "" : text
      const documented = [...withoutCode.matchAll(DOCUMENTED)]
        .map(([, found]) => found ?? "")
        .filter((found) => real.has(found))
      expect(pathsIn(text)).toEqual(expect.arrayContaining(documented))
    })
  })

  test(
    promised("handoff.C1", "file references are the same again when they are written out, also with 1,000 escapes"),
    () => {
      const character = fc.constantFrom(...` \n\r\t"'\\\`.,()@é\u001b\u2028`.split(""))
      const hostile = fc.oneof(character, fc.constantFrom("🎉", "..", ":10", "#L1-L2", "\\n", "\\x60", "-5"))
      const path = fc.oneof(
        fc.string({ minLength: 1, maxLength: 1_000 }),
        fc.string({ minLength: 1, maxLength: 1_000, unit: "binary" }),
        fc
          .array(fc.oneof(hostile, fc.constantFrom("a", "b/", "c.ts")), { minLength: 1, maxLength: 200 })
          .map((parts) => parts.join("")),
      )
      const lines = fc.option(
        fc
          .tuple(fc.integer({ min: 1, max: 9_999_999 }), fc.option(fc.nat({ max: 1_000 }), { nil: undefined }))
          .map(([first, more]) => ({ first, ...(more === undefined ? {} : { last: first + more }) })),
        { nil: undefined },
      )
      const reference = fc
        .tuple(path, lines)
        .filter(([each]) => !each.includes("\0") && each.length <= 1_000)
        .map(([each, range]): FileReference => ({ path: each, ...(range ? { lines: range } : {}) }))
      const selector = (each: FileReference) => JSON.stringify(each)
      forAll(1_000, [fc.uniqueArray(reference, { minLength: 1, maxLength: 5, selector })], (references) => {
        const written = references.map(renderReference)
        expect(written.join("")).not.toMatch(/[\n\r`]/)
        expect(parseReferences(written.join(" "))).toEqual(references)
        expect(parseReferences(`Read (${written.join("), (")}).`)).toEqual(references)
      })
      for (const character of ['"', "\\", "\n", "`", "\u0001"]) {
        const path = character.repeat(1_000)
        expect(parseReferences(renderReference({ path }))).toEqual([{ path }])
      }
    },
  )

  test(promised("handoff.C1", "file references never break on any text"), () => {
    const sign = fc.constantFrom("@", '@"', "`", "```\n", "\\", ":1-", "#L", ")", "\ud83d", "\udc00")
    const piece = fc.oneof(fc.string(), sign)
    forAll(3_000, [fc.array(piece, { maxLength: 20 })], (parts) => {
      for (const { path, lines } of parseReferences(parts.join(""))) {
        expect(path).not.toBe("")
        expect(lines?.first ?? 1).toBeGreaterThanOrEqual(1)
        expect(lines?.last ?? Number.POSITIVE_INFINITY).toBeGreaterThanOrEqual(lines?.first ?? 1)
      }
    })
  })

  test(promised("handoff.E2", "file references end after 1,000"), () => {
    const text = Array.from({ length: 5_000 }, (_, index) => `@f${index}`).join(" ")
    expect(pathsIn(text)).toEqual(Array.from({ length: 1_000 }, (_, index) => `f${index}`))
  })
})

const CODE: readonly (readonly [why: string, text: string, code: readonly string[]])[] = [
  ["a span", "a `b` c", ["`b`"]],
  ["a span of two backticks with one inside", "``a ` b`` c", ["``a ` b``"]],
  ["two spans", "`a` `b`", ["`a`", "`b`"]],
  ["a span behind a run that is never closed", "``` a `b`", ["`b`"]],
  ["a span in which a backslash means nothing", "`a\\` b`c`", ["`a\\`", "`c`"]],
  ["a fence", "a\n```ts\nb\n```\nc", ["```ts\nb\n```"]],
  ["a fence of tildes with backticks inside", "~~~\n```\n~~~\na", ["~~~\n```\n~~~"]],
  ["a fence with a shorter fence inside", "````\n```\na\n```\n````\nb", ["````\n```\na\n```\n````"]],
  ["a fence that a line with a language does not close", "```\na\n```ts\nb\n```\nc", ["```\na\n```ts\nb\n```"]],
  ["a fence that is never closed", "a\n```\nb\n\nc", ["```\nb\n\nc"]],
  ["a fence with CRLF", "```\r\na\r\n```\r\nb", ["```\r\na\r\n```\r"]],
  ["an indented fence", "   ```\na\n ```\nb", ["   ```\na\n ```"]],
  ["a fence with a blank line in a list", "1. a\n\n   ```\n   b\n\n   c\n   ```\nd", ["   ```\n   b\n\n   c\n   ```"]],
  ["a fence deep in a list", "10. a\n    ```\n    b\n\n    c\n    ```\nd", ["    ```\n    b\n\n    c\n    ```"]],
  ["a fence on the line of its list mark", "- ```\n  a\n  ```\nb", ["- ```\n  a\n  ```"]],
  ["a fence behind two list marks", "- 1. ```\n     a\n     ```\nb", ["- 1. ```\n     a\n     ```"]],
  ["a fence behind a tab", "- a\n\n\t```\n\tb\n\t```\nc", ["\t```\n\tb\n\t```"]],
  ["a span in a heading", "# a `b`\nc", ["`b`"]],
  ["backticks behind a fence's mark, which make a span", "```a``` b", ["```a```"]],
]

const PLAIN: readonly (readonly [why: string, text: string])[] = [
  ["nothing", ""],
  ["one backtick", "a ` b"],
  ["runs of different lengths", "a ` b `` c ``` d"],
  ["a backtick in each of two paragraphs", "a ` b\n\nc ` d"],
  ["a backtick in each of two list items", "- a ` b\n- c ` d"],
  ["a backtick in a heading and one under it", "# a ` b\nc ` d"],
  ["two tildes", "~~a~~"],
]

describe("code in a text", () => {
  test.each(CODE)(promised("handoff.C1", "code in a text is found: %s"), (_why, text, code) =>
    expect(codeIn(text)).toEqual(code),
  )
  test.each(PLAIN)(promised("handoff.C1", "code in a text is not made of %s"), (_why, text) =>
    expect(codeIn(text)).toEqual([]),
  )

  test(promised("handoff.C1", "code in a text comes in order, inside the text and without overlaps"), () => {
    const pieces = fc.constantFrom(..."`\n\t\\a".split(""), "``", "```", "~~~", "\n\n", "- ", "1. ", "# ", "  ", "    ")
    forAll(2_000, [fc.array(pieces, { maxLength: 30 })], (parts) => {
      const text = parts.join("")
      const bounds = findCode(text).flatMap(({ start, end }) => [start, end])
      expect(bounds).toEqual(bounds.toSorted((a, b) => a - b))
      expect(new Set(bounds.filter((_, index) => index % 2 === 0)).size).toBe(bounds.length / 2)
      for (const bound of bounds) expect(bound).toBeLessThanOrEqual(text.length)
      for (const { start, end } of findCode(text)) expect(text.slice(start, end)).toMatch(/`|~~~/)
    })
  })
})

test(promised("handoff.B1", "closing a fence leaves the text behind it outside of code, and other texts alone"), () => {
  const line = fc.constantFrom("```", "~~~", "````ts", "a", "- b", "", "- ```", "  ```", "1. ~~~~", "    c", "> d")
  forAll(1_000, [fc.array(line, { maxLength: 12 })], (lines) => {
    const text = closeFence(lines.join("\n"))
    expect(text.startsWith(lines.join("\n"))).toBe(true)
    const whole = `${text}\n\nbehind`
    expect(findCode(whole).every(({ end }) => end <= text.length + 1)).toBe(true)
  })
  expect(closeFence("```\na\n```\nb `c")).toBe("```\na\n```\nb `c")
})

const GROWING = Array.from({ length: 1_400 }, (_, n) => `${"`".repeat(n)} @b`)

test.each([
  ["backticks", fill("` "), 0],
  ["escaped backticks", fill("\\`"), 0],
  ["backslashes", `${fill("\\")}\``, 0],
  ["line ends", `\`${fill("\n")}`, 0],
  ["list marks", `\`\n${fill("- ")}`, 0],
  ["list items", `\`\n${fill("- a\n")}`, 0],
  ["fences that open one another", fill("~~~~ x\n"), 0],
  ["blanks", `\`${fill(" ")}`, 0],
  ["marks", fill("@"), 0],
  ["runs of backticks, each longer than the one before", `@a ${GROWING.join(" ")}`, 2],
  ["quotes", fill('@"'), 1],
  ["quotes that never end", fill(`@"${"a".repeat(5_000)}\n`), 0],
  ["escaped quotes", fill('@"\\'), 1],
  ["brackets", fill("@a("), 1],
  ["brackets between blanks", fill("@a( "), 1],
  ["closing brackets", fill(`@${")".repeat(4_000)} `), 0],
  ["fences", fill("```\n@a\n"), 1],
  ["spans", fill("`a` @b "), 1],
  ["dots", fill("@a..@"), 3],
  ["e-mail addresses", fill("a@b.de "), 0],
  ["one path", `@${fill("a")}`, 0],
  ["ranges", fill("@a#L1-L"), 0],
  ["one reference again and again", fill("@a "), 1],
] as const)(
  promised(["handoff.C1", "handoff.E2"], "file references are looked for in a megabyte of %s"),
  (_what, text, most) => {
    const code = findCode(text)
    expect(code.every(({ start, end }) => start < end && end <= text.length)).toBe(true)
    expect(parseReferences(text).length).toBeLessThanOrEqual(most)
  },
)
