import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { closeFence, findCode } from "../../../.opencode/baton/handoff/references.ts"
import { promised } from "../../requirements.ts"
import { runs } from "../../support/effort.ts"

const MEGABYTE = 1_048_576

const codeIn = (text: string): string[] => findCode(text).map(({ start, end }) => text.slice(start, end))
const fill = (piece: string): string => piece.repeat(Math.ceil(MEGABYTE / piece.length)).slice(0, MEGABYTE)

const CODE: readonly (readonly [why: string, text: string, code: readonly string[]])[] = [
  ["a span", "a `b` c", ["`b`"]],
  ["a span of two backticks with one inside", "``a ` b`` c", ["``a ` b``"]],
  ["a span over two lines", "`a\nb` c", ["`a\nb`"]],
  ["two spans", "`a` `b`", ["`a`", "`b`"]],
  ["a span behind a run that is never closed", "``` a `b`", ["`b`"]],
  ["a span in which a backslash means nothing", "`a\\` b`c`", ["`a\\`", "`c`"]],
  ["a span behind an escaped backtick", "\\`a `b`", ["`b`"]],
  ["a span that the rest of an escaped run opens", "\\``a` b", ["``a`"]],
  ["a fence", "a\n```ts\nb\n```\nc", ["```ts\nb\n```"]],
  ["a fence of tildes with backticks inside", "~~~\n```\n~~~\na", ["~~~\n```\n~~~"]],
  ["a fence with a shorter fence inside", "````\n```\na\n```\n````\nb", ["````\n```\na\n```\n````"]],
  ["a fence that a line with a language does not close", "```\na\n```ts\nb\n```\nc", ["```\na\n```ts\nb\n```"]],
  ["a fence that is never closed", "a\n```\nb\n\nc", ["```\nb\n\nc"]],
  ["a fence with CRLF", "```\r\na\r\n```\r\nb", ["```\r\na\r\n```\r"]],
  ["an indented fence", "   ```\na\n ```\nb", ["   ```\na\n ```"]],
  [
    "a fence in a list item, with a blank line in it",
    "1. a\n\n   ```\n   b\n\n   c\n   ```\nd",
    ["   ```\n   b\n\n   c\n   ```"],
  ],
  ["a fence deep in a list", "10. a\n    ```\n    b\n\n    c\n    ```\nd", ["    ```\n    b\n\n    c\n    ```"]],
  ["a fence on the line of its list mark", "- ```\n  a\n  ```\nb", ["- ```\n  a\n  ```"]],
  ["a fence behind two list marks", "- 1. ```\n     a\n     ```\nb", ["- 1. ```\n     a\n     ```"]],
  ["a fence behind a tab", "- a\n\n\t```\n\tb\n\t```\nc", ["\t```\n\tb\n\t```"]],
  ["a fence that ends with its list item", "- ```\n  a\nb", ["- ```\n  a\n"]],
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
  ["an escaped backtick before another", "\\` a ` b"],
  ["two tildes", "~~a~~"],
  ["three backticks indented by four", "a\n    ```\nb"],
]

describe("code in a text", () => {
  test.each(CODE)(promised("handoff.C1", "is found: %s"), (_why, text, code) => {
    expect(codeIn(text)).toEqual(code)
  })

  test.each(PLAIN)(promised("handoff.C1", "is not made of %s"), (_why, text) => {
    expect(codeIn(text)).toEqual([])
  })

  test(promised("handoff.C1", "comes in order, inside the text and without overlaps"), () => {
    const pieces = fc.constantFrom(
      "`",
      "``",
      "```",
      "~~~",
      "\n",
      "\n\n",
      "- ",
      "1. ",
      "# ",
      "  ",
      "    ",
      "\t",
      "\\",
      "a",
    )
    fc.assert(
      fc.property(fc.array(pieces, { maxLength: 30 }), (parts) => {
        const text = parts.join("")
        const bounds = findCode(text).flatMap(({ start, end }) => [start, end])
        expect(bounds).toEqual(bounds.toSorted((a, b) => a - b))
        expect(new Set(bounds.filter((_, index) => index % 2 === 0)).size).toBe(bounds.length / 2)
        for (const bound of bounds) expect(bound).toBeLessThanOrEqual(text.length)
        for (const { start, end } of findCode(text)) expect(text.slice(start, end)).toMatch(/`|~~~/)
      }),
      { numRuns: runs(2_000) },
    )
  })

  test(promised("handoff.C1", "covers whatever stands in a long enough fence, and nothing behind it"), () => {
    const line = fc.constantFrom("```", "~~~", "````", "`a", "- b", "", "@c", "  ```")
    fc.assert(
      fc.property(fc.array(line, { maxLength: 10 }), (lines) => {
        const block = ["`````", ...lines, "`````"].join("\n")
        expect(findCode(`${block}\nbehind`)).toEqual([{ start: 0, end: block.length }])
      }),
    )
  })

  test.each([
    ["backticks", fill("` ")],
    [
      "runs of backticks, each longer than the one before",
      Array.from({ length: 1_400 }, (_, n) => "`".repeat(n)).join(" "),
    ],
    ["escaped backticks", fill("\\`")],
    ["backslashes", `${fill("\\")}\``],
    ["line ends", `\`${fill("\n")}`],
    ["list marks", `\`\n${fill("- ")}`],
    ["list items", `\`\n${fill("- a\n")}`],
    ["fences", fill("```\na\n")],
    ["fences that open one another", fill("~~~~ x\n")],
    ["blanks", `\`${fill(" ")}`],
  ])(promised(["handoff.C1", "handoff.E2"], "is looked for in a megabyte of %s"), (_what, text) => {
    const regions = findCode(text)
    expect(regions.every(({ start, end }) => start < end && end <= text.length)).toBe(true)
  })
})

describe("closing a fence", () => {
  test(promised("handoff.B1", "leaves the text behind it outside of code, whatever the text was"), () => {
    const line = fc.constantFrom("```", "~~~", "````ts", "a", "- b", "", "- ```", "  ```", "1. ~~~~", "    c", "> d")
    fc.assert(
      fc.property(fc.array(line, { maxLength: 12 }), (lines) => {
        const text = closeFence(lines.join("\n"))
        expect(text.startsWith(lines.join("\n"))).toBe(true)
        const whole = `${text}\n\nbehind`
        expect(findCode(whole).every(({ end }) => end <= text.length + 1)).toBe(true)
      }),
      { numRuns: runs(1_000) },
    )
  })

  test("changes nothing about a text that leaves none open", () => {
    expect(closeFence("```\na\n```\nb `c")).toBe("```\na\n```\nb `c")
  })
})
