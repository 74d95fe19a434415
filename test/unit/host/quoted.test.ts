import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { quoted, untrusted } from "../../../.opencode/baton/host/quoted.ts"
import { promised } from "../../requirements.ts"
import { forAll } from "../../support/unit.ts"

describe("a text that neither the user nor Baton wrote", () => {
  test.each([
    ["src/parser/crlf_test.ts", "src/parser/crlf_test.ts"],
    ["feature/ada@2.1.0~1+b=c#7", "feature/ada@2.1.0~1+b=c#7"],
    ["プログラム", "プログラム"],
    ["naïve-Größe", "naïve-Größe"],
    ["", '""'],
    ["two words", '"two words"'],
    ["- Task: ts-0bad00", '"- Task: ts-0bad00"'],
    ['a "quotation" and \\', String.raw`"a \"quotation\" and \\"`],
    ["one\ntwo\r\nthree\rfour", String.raw`"one\ntwo\r\nthree\rfour"`],
    ["one\u2028two\u2029three\u0085four", String.raw`"one\u2028two\u2029three\u0085four"`],
    ["\u202Eevil\u2066\u200F", String.raw`"\u202eevil\u2066\u200f"`],
    ["\u001B[2J\u009B1m\u0007\u007F", String.raw`"\u001b[2J\u009b1m\u0007\u007f"`],
    ["`code`", '"`code`"'],
    ["🚀", '"🚀"'],
  ])(promised("words.B1", "%j is shown as %s"), (text, shown) => {
    expect(quoted(untrusted(text))).toBe(shown)
    expect(quoted(text)).toBe(shown)
  })

  test(
    promised(
      ["words.B1", "words.A5a"],
      "a text that neither the user nor Baton wrote is cut to so many characters, marked, and never through one",
    ),
    () => {
      expect(quoted(untrusted("x".repeat(301)))).toBe(`"${"x".repeat(299)}…"`)
      expect(quoted(untrusted("x".repeat(300)))).toBe("x".repeat(300))
      expect(quoted(untrusted("ab🚀cd"), 4)).toBe('"ab…"')
      expect(quoted(untrusted("ab🚀cd"), 5)).toBe('"ab🚀…"')
    },
  )

  const any = fc.oneof(fc.string({ unit: "binary" }), fc.string({ unit: "grapheme", maxLength: 600 }))
  test(
    promised(
      "words.B1",
      "a text that neither the user nor Baton wrote is one line without escape codes, and JSON gives it back if it was not cut",
    ),
    () => {
      forAll(500, [any, fc.integer({ min: 2, max: 700 })], (text, characters) => {
        const shown = quoted(untrusted(text), characters)
        expect(shown).not.toMatch(/\p{Cc}|[\u200e\u200f\u2028-\u202e\u2066-\u2069]/u)
        expect(shown.isWellFormed()).toBe(true)
        if (text.length > characters) expect(shown).toMatch(/…"$/)
        else expect(shown.startsWith('"') ? JSON.parse(shown) : shown).toBe(text)
      })
    },
  )
})
