import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { parseLocatedJSON } from "../../../.opencode/baton/pass-over/policy/policy.ts"
import { promised } from "../../requirements.ts"
import { runs } from "../../support/effort.ts"

const parsedValue = (text: string): unknown => {
  const parsed = parseLocatedJSON(text)
  if (parsed.kind === "malformed") throw new Error(`${parsed.line}: ${parsed.reason}`)
  return parsed.value
}

const isJSON = (text: string): boolean => {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

describe("JSON with lines", () => {
  test(promised("pass-over.C2", "is the value that JSON.parse gives, however it is written"), () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.constantFrom(0, 2, "\t"), (value, indent) => {
        const text = JSON.stringify(value, null, indent)
        expect(parsedValue(text)).toEqual(JSON.parse(text))
      }),
    )
    expect(parsedValue('{"__proto__": {"a": 1}}')).toEqual(JSON.parse('{"__proto__": {"a": 1}}'))
  })

  test(promised("pass-over.C2", "is refused exactly where JSON.parse refuses it"), () => {
    const signs = Array.from('{}[]:,"\\ \n\t1-.e0')
    const pieces = fc.constantFrom(...signs, "true", "null", '"a"', '"b":', "1e5", "\u0001", "é")
    fc.assert(
      fc.property(fc.array(pieces, { maxLength: 12 }), (parts) => {
        const text = parts.join("")
        const parsed = parseLocatedJSON(text)
        if (parsed.kind === "malformed" && parsed.reason.endsWith("is there twice")) return
        expect(parsed.kind, text).toBe(isJSON(text) ? "value" : "malformed")
      }),
      { numRuns: runs(3000) },
    )
  })

  test.each([
    ['{\n  "a": 1,\n  "a": 2\n}', 3, 'the key "a" is there twice'],
    ['{\n  "a": 1\n  "b": 2\n}', 3, 'expected "," or "}", received "\\"b\\": 2'],
    ["{\n  a: 1\n}", 2, "expected a key in double quotes, received"],
    ['{\n"a":\n}', 3, "expected a value, received"],
    ['{"a": [1,\n2', 2, 'expected "," or "]", received the end of the file'],
    ["{}\n\n// more", 3, "expected the end of the file"],
    ['{"a": "\u0001"}', 1, "expected a text as JSON has it"],
    ["", 1, "expected a value, received the end of the file"],
    ["[".repeat(70), 1, "it is nested more than 64 deep"],
  ])(promised("pass-over.C2", "%j is refused on line %i: %s"), (text, line, reason) => {
    expect(parseLocatedJSON(text)).toEqual({ kind: "malformed", line, reason: expect.stringContaining(reason) })
  })

  test(promised("pass-over.C2", "says on which line a thing begins, and else what is around it"), () => {
    const parsed = parseLocatedJSON('{\n  "pairs": {\n    "a->b":\n      { "x": [1,\n 2] }\n  }\n}')
    if (parsed.kind === "malformed") throw new Error(parsed.reason)
    const { lineOf } = parsed
    expect([lineOf([]), lineOf(["pairs"]), lineOf(["pairs", "a->b"]), lineOf(["pairs", "a->b", "x", 1])]).toEqual([
      1, 2, 3, 5,
    ])
    expect(lineOf(["pairs", "a->b", "missing", "deeper"])).toBe(3)
    expect(lineOf(["nowhere"])).toBe(1)
  })
})
