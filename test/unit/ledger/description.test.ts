import fc from "fast-check"
import { describe, expect, test } from "vitest"
import * as descriptions from "../../../.opencode/baton/ledger/description.ts"
import { promised } from "../../requirements.ts"
import { forAll } from "../../support/for-all.ts"

const { mergeHandoff: merge, splitHandoffs, toArgument, truncateBytes } = descriptions

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
  test(promised("compaction.C7", "a description keeps the specification byte for byte, whatever is in both"), () => {
    forAll(2000, [plain, text], (specification, section) => {
      expect(splitHandoff(mergeHandoff(specification, section)).specification).toBe(specification)
    })
  })

  test("a description holds one handoff: a second replaces the first, the same again changes nothing", () => {
    forAll(2000, [plain, text, text], (specification, first, second) => {
      const once = mergeHandoff(specification, second)
      expect(mergeHandoff(mergeHandoff(specification, first), second)).toBe(once)
      expect(mergeHandoff(once, second)).toBe(once)
      expect(splitHandoff(once).handoff).toBeDefined()
    })
  })

  test("a description keeps a known specification byte for byte even when it looks like a section of Baton's", () => {
    forAll(2000, [text, text, text], (specification, first, second) => {
      const once = mergeHandoff(specification, first, specification)
      expect(once.startsWith(specification)).toBe(true)
      expect(mergeHandoff(once, second, specification)).toBe(mergeHandoff(specification, second, specification))
    })
  })

  test("a description loses neither the original nor what an agent wrote over it, and settles at once", () => {
    forAll(2000, [plain, plain, text], (original, written, section) => {
      const merged = mergeHandoff(written, section, original)
      const { specification } = splitHandoff(merged)
      const normal = (value: string) => value.replaceAll("\r\n", "\n").trim()
      expect(normal(specification)).toContain(normal(original))
      expect(normal(specification)).toContain(normal(written))
    })
  })

  test("a description gives the handoff back as it was put in, readable, in a marked section", () => {
    const section = "## Done\n- `a`\n\n## Next\n- b"
    expect(splitHandoff(mergeHandoff("spec", `\n${section}\n`)).handoff).toBe(section)
    expect(splitHandoff("spec")).toEqual({ specification: "spec" })
    expect(splitHandoff(mergeHandoff("", "only"))).toEqual({ specification: "", handoff: "only" })
    const marked = /^Build it\.\n\n\n<!-- baton:handoff [0-9a-f]{12}, .* -->\nHalf done\.\n<!-- \/baton:handoff -->$/
    expect(mergeHandoff("Build it.\n", "Half done.")).toMatch(marked)
  })

  test("a description keeps what was appended behind the section", () => {
    const appended = `${mergeHandoff("spec", "one")}\n\nAlso do this.`
    expect(splitHandoff(appended)).toEqual({ specification: "spec\n\nAlso do this.", handoff: "one" })
    expect(mergeHandoff(appended, "two")).toBe(mergeHandoff("spec\n\nAlso do this.", "two"))
  })

  test("a description replaces a section with CRLF or edited, and drops the copies that racing writers left", () => {
    const converted = mergeHandoff("a\nb", "one\ntwo").replaceAll("\n", "\r\n")
    expect(splitHandoff(converted)).toEqual({ specification: "a\r\nb", handoff: "one\ntwo" })
    expect(splitHandoff(mergeHandoff(converted, "three"))).toEqual({ specification: "a\r\nb", handoff: "three" })
    const edited = mergeHandoff("spec", "one").replace("one", "one, edited")
    expect(mergeHandoff(edited, "two")).toBe(mergeHandoff("spec", "two"))
    const copies = `${mergeHandoff("spec", "one")}\n\n${mergeHandoff("", "two")}`
    expect(mergeHandoff(copies, "three")).toBe(mergeHandoff("spec", "three"))
  })

  test.each([
    ["the opening mark", (description: string) => description.replace(/<!-- baton:handoff[^\n]*\n/, "")],
    ["the closing mark", (description: string) => description.replace("\n<!-- /baton:handoff -->", "")],
    ["half of the opening mark", (description: string) => description.replace("<!-- baton:handoff", "<!-- ")],
  ])("a description keeps the text when %s is gone, and is whole again after the next merge", (_name, damage) => {
    const damaged = damage(mergeHandoff("spec", "one"))
    const mended = mergeHandoff(damaged, "two")
    expect(splitHandoff(mended)).toEqual({ specification: damaged, handoff: "two" })
    expect(mergeHandoff(mended, "three")).toBe(mergeHandoff(damaged, "three"))
  })

  test("a description takes nothing for a section that goes on in the last line of a known specification", () => {
    const quoted = mergeHandoff("", "quoted")
    const written = `Write ${quoted}`
    expect(splitHandoff(mergeHandoff(written, "one", "Write ")).specification).toBe(written)
  })

  test(promised("compaction.C7", "a description restores a specification that an agent's prog desc wrote over"), () => {
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
  test("a text for the ledger is sent whole while it fits", () => {
    forAll(100, [fc.string({ unit: "grapheme" })], (text) => {
      expect(truncateBytes("ts-000001", text, 10_000)).toEqual({ kind: "whole", text: toArgument(text) })
    })
  })

  test(
    promised(
      "ledger.D1",
      "a text for the ledger is cut between characters, with a pointer to the whole, when it is too long",
    ),
    () => {
      const long = fc.string({ unit: "grapheme", minLength: 200 })
      forAll(100, [long, fc.integer({ min: 120, max: 400 })], (text, limit) => {
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
      })
    },
  )

  test("a text for the ledger loses what no program can receive, and nothing else", () => {
    expect(toArgument("a\0b\ud800c🎉\r\n")).toBe("a\u2400b\ufffdc🎉\r\n")
  })

  test("a text for the ledger is refused when not even the pointer fits, and keeps its file inside the folder", () => {
    expect(truncateBytes("ts-000001", "x".repeat(100), 50)).toEqual({ kind: "no-room" })
    const fitted = truncateBytes("../../etc/x", "y".repeat(500), 300)
    expect(fitted).toMatchObject({ kind: "cut", file: expect.stringMatching(/^[a-z0-9_-]+\.md$/) })
  })
})

const handoffOf = (session: string, minute: number, text = `Work of ${session}.`): string => {
  const at = `2026-01-01T00:${String(minute).padStart(2, "0")}:00.000Z`
  return `# Handoff after compaction ${minute} (session ses_${session}, summary msg_${session}${minute}, ${at})\n\n${text}`
}
const mergeAll = (description: string, ...sections: string[]): string =>
  sections.reduce((merged, section) => merge(merged, section).description, description)

describe("the handoffs of several sessions", () => {
  test(promised("sessions.A2", "handoffs of several sessions are three at most: the oldest is handed back"), () => {
    const full = mergeAll("Spec", handoffOf("a", 1), handoffOf("b", 2), handoffOf("c", 3))
    const { description, dropped } = merge(full, handoffOf("d", 4))
    expect(dropped).toEqual([handoffOf("a", 1)])
    expect(splitHandoffs(description).handoffs).toEqual([handoffOf("d", 4), handoffOf("c", 3), handoffOf("b", 2)])
    const late = merge(description, handoffOf("a", 1))
    expect(late).toMatchObject({ description, dropped: [handoffOf("a", 1)] })
  })

  test(promised("sessions.A2", "handoffs stay when an older one of their session is delivered late"), () => {
    const title = "(session ses_a, summary msg_1, 2026-01-01T09:00:00.000Z)"
    const old = `# Handoff after compaction 1 ${title}\n\nOld.`
    const description = mergeAll("Spec", handoffOf("a", 2))
    expect(merge(description, old)).toMatchObject({ description, dropped: [] })
    const progress = "# Work in progress (session ses_a, 2026-01-01T09:00:00.000Z)\n\nLess."
    expect(merge(description, progress)).toMatchObject({ description, dropped: [] })
  })

  test(
    promised(["sessions.A1", "task.B3"], "handoffs take over the facts of later work of their session alone"),
    () => {
      const [facts, later] = ["old.ts", "new.ts"].map(
        (file) => `## Facts gathered by program\n- Files changed: ${file}`,
      )
      const work = (hour: string) =>
        `# Work in progress (session ses_a, 2026-01-01T${hour}:00:00.000Z)\n\nSo far.\n\n${later}`
      const first = handoffOf("a", 1, `The lexer is proven.\n\n${facts}`)
      const before = mergeAll("Spec", first, handoffOf("b", 2))
      const { description, dropped } = merge(before, work("09"))
      const title = "# Handoff after compaction 1 (session ses_a, summary msg_a1, 2026-01-01T09:00:00.000Z)"
      const taken = `${title}\n\nThe lexer is proven.\n\n${later}`
      expect(splitHandoffs(description)).toEqual({ specification: "Spec", handoffs: [taken, handoffOf("b", 2)] })
      expect(dropped).toEqual([])
      for (const again of [work("09"), work("08"), first]) expect(mergeAll(description, again)).toBe(description)
      expect(mergeAll(before, work("00"))).toBe(before)
    },
  )

  test(
    promised("sessions.A2", "handoffs of several sessions give way when the description has no room for them"),
    () => {
      const others = mergeAll("Spec", handoffOf("a", 1, "x".repeat(400)), handoffOf("b", 2))
      const { description, dropped } = merge(others, handoffOf("c", 3), { maxBytes: 900 })
      expect(splitHandoffs(description).handoffs).toEqual([handoffOf("c", 3), handoffOf("b", 2)])
      expect(dropped).toEqual([handoffOf("a", 1, "x".repeat(400))])
    },
  )

  test(promised("sessions.A2", "handoffs of which one was edited are found, and replaced by their own session"), () => {
    const edited = mergeAll("Spec", handoffOf("a", 1), handoffOf("b", 2)).replace("Work of b.", "Work of b, in part.")
    expect(splitHandoffs(edited).specification).toBe("Spec")
    const { handoffs } = splitHandoffs(mergeAll(edited, handoffOf("a", 3)))
    expect(handoffs).toEqual([handoffOf("a", 3), handoffOf("b", 2, "Work of b, in part.")])
  })

  test(
    promised("sessions.A2", "handoffs of several sessions never change the specification, in any order, and settle"),
    () => {
      const session = fc.constantFrom("a", "b", "c", "d", "e")
      const write = fc.record({ session, minute: fc.nat(59), text: fc.string() })
      const specification = fc.string().filter((text) => splitHandoffs(text).handoffs.length === 0)
      forAll(500, [specification, fc.array(write, { maxLength: 12 })], (spec, writes) => {
        const sections = writes.map(({ session: id, minute, text }) => handoffOf(id, minute, text))
        const merged = mergeAll(spec, ...sections)
        const { handoffs } = splitHandoffs(merged)
        expect(splitHandoffs(merged).specification).toBe(spec)
        expect(handoffs.length).toBe(Math.min(3, new Set(writes.map(({ session: id }) => id)).size))
        const [newest] = handoffs
        if (newest !== undefined) expect(merge(merged, newest)).toMatchObject({ description: merged, dropped: [] })
      })
    },
  )
})
