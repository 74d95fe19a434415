import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { mergeHandoff, splitHandoffs } from "../../../.opencode/baton/ledger/description.ts"
import { promised } from "../../requirements.ts"
import { forAll } from "../../support/for-all.ts"

const handoffOf = (session: string, minute: number, text = `Work of ${session}.`): string => {
  const at = `2026-01-01T00:${String(minute).padStart(2, "0")}:00.000Z`
  return `# Handoff after compaction ${minute} (session ses_${session}, summary msg_${session}${minute}, ${at})\n\n${text}`
}
const merge = (description: string, ...sections: string[]): string =>
  sections.reduce((merged, section) => mergeHandoff(merged, section).description, description)

describe("the handoffs of several sessions", () => {
  test(promised("sessions.A2", "stand side by side, the newest first, and each replaces its own earlier one"), () => {
    const description = merge("The specification.", handoffOf("a", 1), handoffOf("b", 2), handoffOf("a", 3))
    const handoffs = [handoffOf("a", 3), handoffOf("b", 2)]
    expect(splitHandoffs(description)).toEqual({ specification: "The specification.", handoffs })
  })

  test(promised("sessions.A2", "are three at most: the oldest is handed back"), () => {
    const full = merge("Spec", handoffOf("a", 1), handoffOf("b", 2), handoffOf("c", 3))
    const { description, dropped } = mergeHandoff(full, handoffOf("d", 4))
    expect(dropped).toEqual([handoffOf("a", 1)])
    expect(splitHandoffs(description).handoffs).toEqual([handoffOf("d", 4), handoffOf("c", 3), handoffOf("b", 2)])
    const late = mergeHandoff(description, handoffOf("a", 1))
    expect(late).toEqual({ description, dropped: [handoffOf("a", 1)] })
  })

  test(promised("sessions.A2", "stay when an older one of their session is delivered late"), () => {
    const title = "(session ses_a, summary msg_1, 2026-01-01T09:00:00.000Z)"
    const old = `# Handoff after compaction 1 ${title}\n\nOld.`
    const description = merge("Spec", handoffOf("a", 2))
    expect(mergeHandoff(description, old)).toEqual({ description, dropped: [] })
    const progress = "# Work in progress (session ses_a, 2026-01-01T09:00:00.000Z)\n\nLess."
    expect(mergeHandoff(description, progress)).toEqual({ description, dropped: [] })
  })

  test(promised("sessions.A2", "give way when the description has no room for them"), () => {
    const others = merge("Spec", handoffOf("a", 1, "x".repeat(400)), handoffOf("b", 2))
    const { description, dropped } = mergeHandoff(others, handoffOf("c", 3), { maxBytes: 900 })
    expect(splitHandoffs(description).handoffs).toEqual([handoffOf("c", 3), handoffOf("b", 2)])
    expect(dropped).toEqual([handoffOf("a", 1, "x".repeat(400))])
  })

  test(promised("sessions.A2", "of which one was edited are found, and replaced by their own session"), () => {
    const edited = merge("Spec", handoffOf("a", 1), handoffOf("b", 2)).replace("Work of b.", "Work of b, in part.")
    expect(splitHandoffs(edited).specification).toBe("Spec")
    const { handoffs } = splitHandoffs(merge(edited, handoffOf("a", 3)))
    expect(handoffs).toEqual([handoffOf("a", 3), handoffOf("b", 2, "Work of b, in part.")])
  })

  test(promised("sessions.A2", "keep a section that Baton 0.1.0 wrote, as that session's"), () => {
    const old = merge("Spec", handoffOf("old", 1))
    expect(splitHandoffs(merge(old, handoffOf("new", 2))).handoffs).toEqual([handoffOf("new", 2), handoffOf("old", 1)])
  })

  test(promised("sessions.A2", "never change the specification, in any order, and settle"), () => {
    const session = fc.constantFrom("a", "b", "c", "d", "e")
    const write = fc.record({ session, minute: fc.nat(59), text: fc.string() })
    const specification = fc.string().filter((text) => splitHandoffs(text).handoffs.length === 0)
    forAll(500, [specification, fc.array(write, { maxLength: 12 })], (spec, writes) => {
      const sections = writes.map(({ session: id, minute, text }) => handoffOf(id, minute, text))
      const merged = merge(spec, ...sections)
      const { handoffs } = splitHandoffs(merged)
      expect(splitHandoffs(merged).specification).toBe(spec)
      expect(handoffs.length).toBe(Math.min(3, new Set(writes.map(({ session: id }) => id)).size))
      const [newest] = handoffs
      if (newest !== undefined) expect(mergeHandoff(merged, newest)).toEqual({ description: merged, dropped: [] })
    })
  })
})
