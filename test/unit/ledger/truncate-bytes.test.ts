import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { toArgument, truncateBytes } from "../../../.opencode/baton/ledger/description.ts"
import { promised } from "../../requirements.ts"

describe("a text for the ledger", () => {
  test("is sent whole while it fits", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme" }), (text) => {
        expect(truncateBytes("ts-000001", text, 10_000)).toEqual({ kind: "whole", text: toArgument(text) })
      }),
    )
  })

  test(promised("ledger.D1", "is cut between characters, with a pointer to the whole, when it is too long"), () => {
    fc.assert(
      fc.property(
        fc.string({ unit: "grapheme", minLength: 200 }),
        fc.integer({ min: 120, max: 400 }),
        (text, limit) => {
          const full = toArgument(text)
          fc.pre(Buffer.byteLength(full) > limit)
          const fitted = truncateBytes("TS-00000A", text, limit)
          if (fitted.kind !== "cut") throw new Error(`expected a cut text, received ${fitted.kind}`)
          const [kept = ""] = fitted.text.split("\n\n[cut: ")
          expect(Buffer.byteLength(fitted.text)).toBeLessThanOrEqual(limit)
          expect(Buffer.byteLength(fitted.text)).toBeGreaterThan(limit - 4)
          expect(full.startsWith(kept)).toBe(true)
          expect(fitted).toMatchObject({ full, file: expect.stringMatching(/^ts-00000a-[0-9a-f]{12}\.md$/) })
          expect(fitted.text).toContain(`.opencode/state/long-texts/${fitted.file}]`)
          expect(truncateBytes("TS-00000A", text, limit)).toEqual(fitted)
        },
      ),
    )
  })

  test("loses what no program can receive, and nothing else", () => {
    expect(toArgument("a\0b\ud800c🎉\r\n")).toBe("a\u2400b\ufffdc🎉\r\n")
  })

  test("is refused when not even the pointer fits", () => {
    expect(truncateBytes("ts-000001", "x".repeat(100), 50)).toEqual({ kind: "no-room" })
  })

  test("keeps its file inside the folder, whatever the id", () => {
    const fitted = truncateBytes("../../etc/x", "y".repeat(500), 300)
    expect(fitted).toMatchObject({ kind: "cut", file: expect.stringMatching(/^[a-z0-9_-]+\.md$/) })
  })
})
