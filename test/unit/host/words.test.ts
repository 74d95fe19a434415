import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { excerptAround, folded, hasWords, splitWords } from "../../../.opencode/baton/host/words.ts"
import { promised } from "../../requirements.ts"

describe("words", () => {
  test.each([
    ["CRLF lexer", "The Lexer keeps crlf.", true],
    ["CRLF parser", "The lexer keeps crlf.", false],
    ["parse", "The parser", true],
    ["STRASSE", "in der Straße", true],
    ["ΟΔΟΣ", "ἡ οδος", true],
    ["часы ВРЕМЯ", "Время показывают Часы", true],
    ["行 改", "改行を残す", true],
    ["ｃｒｌｆ", "crlf", true],
    ["e\u0301tat", "L’\u00e9tat", true],
    ["قواعد", "هذه قواعد المشروع", true],
    ["a.b*", "a.b* and aXbb", true],
    ["a.b*", "aXbb", false],
  ])(promised("people.E1", "the words %j are in %j: %s"), (query, text, isThere) => {
    const words = splitWords(query)
    expect(hasWords(text, words)).toBe(isThere)
    expect(excerptAround(text, words) !== undefined).toBe(isThere)
  })

  test(promised("people.E1", "words are those between blanks, each once"), () => {
    expect(splitWords("  one\tTwo\u3000ONE\n")).toEqual(["ONE", "TWO"])
    expect(splitWords(" \n ")).toEqual([])
  })
})

describe("an excerpt", () => {
  const far = "x ".repeat(3_000)

  test(
    promised("people.E1", "an excerpt is the text around the words, where they are nearest to each other, on one line"),
    () => {
      const text = `lexer ${far}lexer\nkeeps crlf\n${far}crlf`
      const excerpt = excerptAround(text, ["CRLF", "LEXER"]) ?? ""
      expect(excerpt).toMatch(/^…[x ]+lexer keeps crlf [x ]+…$/)
      expect(excerpt.length).toBeLessThan(200)
    },
  )

  test(promised("people.E1", "an excerpt shows words that are far apart each by itself"), () => {
    const excerpt = excerptAround(`${far}lexer ${far}crlf`, ["CRLF", "LEXER"]) ?? ""
    expect(excerpt).toMatch(/lexer [x ]+… …[x ]+crlf$/)
    expect(excerpt.length).toBeLessThan(500)
  })

  test(promised("people.E1", "an excerpt holds no secret and no half of one, and a secret finds nothing"), () => {
    const secret = `ghp_${"a1B2".repeat(10)}`
    const text = `${far}export TOKEN=${secret} for the lexer ${far}`
    expect(excerptAround(text, ["LEXER"])).toContain("[redacted] for the lexer")
    expect(excerptAround(text, ["LEXER"])).not.toContain("a1B2")
    expect(excerptAround(text, [folded(secret)])).toBeUndefined()
    expect(excerptAround(text, ["LEXER", "1B2A"])).toBeUndefined()
    const key = `-----BEGIN PRIVATE KEY-----\n${"MIIEv8/k\n".repeat(200)}-----END PRIVATE KEY----- lexer`
    expect(excerptAround(key, ["LEXER"])).toBe("[redacted] lexer")
  })

  test(promised("people.E1", "an excerpt is found where the folded text is longer or shorter than the text"), () => {
    const text = `${"ßŉ e\u0301 ﬃ İ ".repeat(400)}the lexer is here${" ß".repeat(400)}`
    expect(excerptAround(text, ["LEXER"])).toContain("the lexer is here")
  })

  test(promised("people.E1", "an excerpt of any text has all of the words that the text has"), () => {
    const words = fc.array(fc.string({ unit: "grapheme", minLength: 1, maxLength: 4 }), { minLength: 1, maxLength: 4 })
    const around = fc.string({ unit: "grapheme", maxLength: 300 })
    fc.assert(
      fc.property(words, around, around, (given, before, after) => {
        const sought = splitWords(given.join(" "))
        fc.pre(sought.length > 0)
        const text = `${before} ${given.join(" ")} ${after}`
        if (hasWords(text, sought)) expect(hasWords(excerptAround(text, sought) ?? "", sought)).toBe(true)
      }),
    )
  })
})
