import fc from "fast-check"
import { describe, expect, test } from "vitest"
import {
  mergeHandoff as merge,
  splitHandoffs,
  toArgument,
  truncateBytes,
} from "../../../.opencode/baton/ledger/description.ts"
import { promised } from "../../requirements.ts"
import { forAll } from "../../support/for-all.ts"

/** A description with this section, as a single session writes it. */
const mergeHandoff = (description: string, section: string, original?: string): string =>
  merge(description, section, { original }).description

const splitHandoff = (description: string) => {
  const { specification, handoffs } = splitHandoffs(description)
  const [handoff] = handoffs
  return handoff === undefined ? { specification } : { specification, handoff }
}

const MARKS = [
  "<!-- baton:handoff 0123456789ab, replaced at each compaction -->",
  "<!-- baton:handoff -->",
  "<!-- /baton:handoff -->",
  mergeHandoff("", "quoted"),
]
const piece = fc.oneof(fc.string(), fc.constantFrom(...MARKS, "\n", "\r\n", "\r", "\n\n", "é🎉", "   ", "- item"))
const text = fc.array(piece, { maxLength: 12 }).map((pieces) => pieces.join(""))
/** A specification without text that looks like a section of Baton. */
const plain = text.filter((specification) => splitHandoff(specification).handoff === undefined)

describe("a description", () => {
  test(promised("compaction.C7", "keeps the specification byte for byte, whatever is in both"), () => {
    forAll(2000, [plain, text], (specification, section) => {
      expect(splitHandoff(mergeHandoff(specification, section)).specification).toBe(specification)
    })
  })

  test("holds one handoff: a second replaces the first, the same again changes nothing", () => {
    forAll(2000, [plain, text, text], (specification, first, second) => {
      const once = mergeHandoff(specification, second)
      expect(mergeHandoff(mergeHandoff(specification, first), second)).toBe(once)
      expect(mergeHandoff(once, second)).toBe(once)
      expect(splitHandoff(once).handoff).toBeDefined()
    })
  })

  test("keeps a known specification byte for byte even when it looks like a section of Baton's", () => {
    forAll(2000, [text, text, text], (specification, first, second) => {
      const once = mergeHandoff(specification, first, specification)
      expect(once.startsWith(specification)).toBe(true)
      expect(mergeHandoff(once, second, specification)).toBe(mergeHandoff(specification, second, specification))
    })
  })

  test("loses neither the original nor what an agent wrote over it, and settles at once", () => {
    forAll(2000, [plain, plain, text], (original, written, section) => {
      const merged = mergeHandoff(written, section, original)
      const { specification } = splitHandoff(merged)
      const normal = (value: string) => value.replaceAll("\r\n", "\n").trim()
      expect(normal(specification)).toContain(normal(original))
      expect(normal(specification)).toContain(normal(written))
    })
  })

  test("gives the handoff back as it was put in", () => {
    const section = "## Done\n- `a`\n\n## Next\n- b"
    expect(splitHandoff(mergeHandoff("spec", `\n${section}\n`)).handoff).toBe(section)
    expect(splitHandoff("spec")).toEqual({ specification: "spec" })
    expect(splitHandoff(mergeHandoff("", "only"))).toEqual({ specification: "", handoff: "only" })
  })

  test("is readable: specification, blank line, marked section", () => {
    expect(mergeHandoff("Build it.\n", "Half done.")).toMatch(
      /^Build it\.\n\n\n<!-- baton:handoff [0-9a-f]{12}, replaced at each compaction -->\nHalf done\.\n<!-- \/baton:handoff -->$/,
    )
  })

  test("keeps what was appended behind the section", () => {
    const appended = `${mergeHandoff("spec", "one")}\n\nAlso do this.`
    expect(splitHandoff(appended)).toEqual({ specification: "spec\n\nAlso do this.", handoff: "one" })
    expect(mergeHandoff(appended, "two")).toBe(mergeHandoff("spec\n\nAlso do this.", "two"))
  })

  test("finds the section after an editor has turned every line end into CRLF", () => {
    const converted = mergeHandoff("a\nb", "one\ntwo").replaceAll("\n", "\r\n")
    expect(splitHandoff(converted)).toEqual({ specification: "a\r\nb", handoff: "one\ntwo" })
    expect(splitHandoff(mergeHandoff(converted, "three"))).toEqual({ specification: "a\r\nb", handoff: "three" })
  })

  test("replaces a section that somebody edited, and drops the copies that racing writers left", () => {
    const edited = mergeHandoff("spec", "one").replace("one", "one, edited")
    expect(mergeHandoff(edited, "two")).toBe(mergeHandoff("spec", "two"))
    const copies = `${mergeHandoff("spec", "one")}\n\n${mergeHandoff("", "two")}`
    expect(mergeHandoff(copies, "three")).toBe(mergeHandoff("spec", "three"))
  })

  test.each([
    ["the opening mark", (description: string) => description.replace(/<!-- baton:handoff[^\n]*\n/, "")],
    ["the closing mark", (description: string) => description.replace("\n<!-- /baton:handoff -->", "")],
    ["half of the opening mark", (description: string) => description.replace("<!-- baton:handoff", "<!-- ")],
  ])("keeps the text when %s is gone, and is whole again after the next merge", (_name, damage) => {
    const damaged = damage(mergeHandoff("spec", "one"))
    const mended = mergeHandoff(damaged, "two")
    expect(splitHandoff(mended)).toEqual({ specification: damaged, handoff: "two" })
    expect(mergeHandoff(mended, "three")).toBe(mergeHandoff(damaged, "three"))
  })

  test("takes nothing for a section that goes on in the last line of a known specification", () => {
    const quoted = mergeHandoff("", "quoted")
    const written = `Write ${quoted}`
    expect(splitHandoff(mergeHandoff(written, "one", "Write ")).specification).toBe(written)
  })

  test(promised("compaction.C7", "restores a specification that an agent's prog desc wrote over"), () => {
    const overwritten = mergeHandoff("Progress: half.", "one", "# Build\nthe thing")
    expect(splitHandoff(overwritten).specification).toBe(
      "# Build\nthe thing\n\n<!-- baton: this was written over the specification, which is restored above -->\nProgress: half.",
    )
    expect(splitHandoff(mergeHandoff("Progress: all.", "two", "# Build\nthe thing")).specification).toContain("all.")
    expect(mergeHandoff("", "one", "# Build")).toBe(mergeHandoff("# Build", "one"))
    expect(mergeHandoff("# Build\n\nAmended.", "one", "# Build")).toBe(mergeHandoff("# Build\n\nAmended.", "one"))
  })
})

describe("a text for the ledger", () => {
  test("is sent whole while it fits", () => {
    forAll(100, [fc.string({ unit: "grapheme" })], (text) => {
      expect(truncateBytes("ts-000001", text, 10_000)).toEqual({ kind: "whole", text: toArgument(text) })
    })
  })

  test(promised("ledger.D1", "is cut between characters, with a pointer to the whole, when it is too long"), () => {
    forAll(
      100,
      [fc.string({ unit: "grapheme", minLength: 200 }), fc.integer({ min: 120, max: 400 })],
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
