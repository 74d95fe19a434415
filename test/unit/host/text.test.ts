import fc from "fast-check"
import { expect, test } from "vitest"
import { cutText, cutTextStart } from "../../../.opencode/baton/host/text.ts"
import { promised } from "../../requirements.ts"
import { forAll } from "../../support/for-all.ts"

test(promised(["words.A5a", "handoff.E2"], "a text is cut between characters and never inside one"), () => {
  expect(["ab", "ab", "ab😀"]).toEqual([2, 3, 4].map((characters) => cutText("ab😀cd", characters)))
  expect(["cd", "cd", "😀cd"]).toEqual([2, 3, 4].map((characters) => cutTextStart("ab😀cd", characters)))
  for (const cut of [cutText, cutTextStart]) {
    expect(cut("short", 10)).toBe("short")
    expect([cut("short", 0), cut("short", -1), cut("", 3)]).toEqual(["", "", ""])
  }
})

test(promised("words.A5a", "a cut text has the wanted length or one less, and is part of the whole"), () => {
  const text = fc.string({ unit: "binary", maxLength: 60 })
  forAll(300, [text, fc.nat(80)], (whole, characters) => {
    const wanted = Math.min(characters, whole.length)
    for (const part of [cutText(whole, characters), cutTextStart(whole, characters)]) {
      expect(part.isWellFormed()).toBe(true)
      expect([wanted, wanted - 1]).toContain(part.length)
    }
    expect(whole.startsWith(cutText(whole, characters))).toBe(true)
    expect(whole.endsWith(cutTextStart(whole, characters))).toBe(true)
  })
})
