import fc from "fast-check"
import { describe, expect, test } from "vitest"
import type { Section } from "../../../.opencode/baton/compaction/budget.ts"
import { createBudget, fitSections, MAX_ADDED_CHARACTERS } from "../../../.opencode/baton/compaction/budget.ts"
import { promised } from "../../requirements.ts"
import { forAll } from "../../support/for-all.ts"

const section = (name: string, text: string, priority: number, maxShare = 0.3) =>
  ({ name, text, priority, maxShare, source: "prog" }) satisfies Section

describe("the budget of what Baton adds", () => {
  test(promised("compaction.C4", "a section that fits stands whole, in the order given"), () => {
    const text = fitSections([section("a", "first", 5), section("b", "second", 0)], createBudget(200_000))
    expect(text).toBe("first\n\nsecond")
  })

  test(promised("compaction.C4", "no text is longer than 12,000 characters or 10 % of the context"), () => {
    const long = { maxLength: 20_000, size: "max" } as const
    const sections = fc.array(
      fc.record({
        name: fc.constantFrom("identity", "brief", "specification"),
        text: fc.oneof(fc.string(long), fc.string({ ...long, unit: "grapheme", maxLength: 9_000 })),
        priority: fc.integer({ min: 0, max: 9 }),
        maxShare: fc.double({ min: 0.05, max: 1, noNaN: true }),
        source: fc.constant("prog show ts-000000"),
      }),
      { maxLength: 7 },
    )
    const contexts = fc.constantFrom(2_000, 8_000, 20_000, 200_000)
    forAll(60, [sections, contexts], (some, context) => {
      const text = fitSections(some, createBudget(context))
      expect(text.length).toBeLessThanOrEqual(MAX_ADDED_CHARACTERS)
      const tokens = Array.from(text).reduce((sum, character) => sum + (character < "\u0080" ? 0.25 : 1), 0)
      expect(tokens).toBeLessThanOrEqual(context * 0.1 + 0.001)
    })
  })

  test(promised("compaction.C4", "what is cut says so in place, and what finds no room is named"), () => {
    const budget = createBudget(8_000)
    const long = "x".repeat(9_000)
    const text = fitSections([section("brief", long, 0, 0.9), section("protocol", long, 9, 0.01)], budget)
    expect(text).toMatch(/\[brief cut to \d+ of 9000 characters; the whole is in prog\]/)
    expect(text).toMatch(/left out for want of room: protocol \(prog\)|protocol cut to/)
  })

  test(promised("compaction.C4", "a cut never splits a character in two"), () => {
    forAll(
      100,
      [fc.string({ unit: "grapheme", minLength: 1, maxLength: 400 }), fc.double({ min: 0, max: 1, noNaN: true })],
      (text, maxShare) => {
        const budget = createBudget(4_000)
        expect(budget.head(text, maxShare).isWellFormed() || !text.isWellFormed()).toBe(true)
        expect(budget.tail(text, maxShare).isWellFormed() || !text.isWellFormed()).toBe(true)
      },
    )
  })
})
