import { readFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { EXPECTED_COMPACTIONS } from "../../../scripts/demonstration/claims.ts"
import {
  createPaint,
  createProgress,
  renderKnowledge,
  renderShow,
  renderStanding,
  WIDTH,
  wantsColour,
} from "../../../scripts/demonstration/report.ts"
import { SUMMARIES } from "../../../scripts/demonstration/scripted-agent.ts"
import { TASK } from "../../../scripts/demonstration/slug-project.ts"
import { promised } from "../../requirements.ts"

const PICTURE = join(import.meta.dirname, "..", "..", "..", "docs", "images", "demo.svg")
const plain = createPaint(false)

/** The text in a picture, one line for each row. */
const textIn = (svg: string): string => {
  const rows = new Map<string, string[]>()
  for (const [, y = "", text = ""] of svg.matchAll(/<text[^>]* y="([\d.]+)"[^>]*>([^<]*)<\/text>/g)) {
    rows.set(y, [...(rows.get(y) ?? []), text])
  }
  return [...rows.values()].map((words) => words.join(" ")).join("\n")
}

test(promised("install.E3", "the picture shows a run of the demo as it is now, with every claim held"), () => {
  const text = textIn(readFileSync(PICTURE, "utf8"))
  for (const { kind, shown } of SUMMARIES) {
    expect(text).toContain(kind)
    expect(text).toContain(shown.replaceAll('"', "&quot;"))
  }
  expect(text).toContain(`went through ${EXPECTED_COMPACTIONS} compactions`)
  expect(text).toContain(TASK.title)
  expect(text).toContain("Every claim holds.")
  expect(text).toContain("after kill -9, in a new session")
  expect(text).not.toMatch(/^✗ (?!kill)/m)
})

describe("the demo's output", () => {
  test(promised("install.E3", "is coloured on a terminal or by force, and never against NO_COLOR"), () => {
    expect(wantsColour({}, true)).toBe(true)
    expect(wantsColour({}, false)).toBe(false)
    expect(wantsColour({ TERM: "dumb" }, true)).toBe(false)
    expect(wantsColour({ FORCE_COLOR: "1" }, false)).toBe(true)
    expect(wantsColour({ FORCE_COLOR: "1", NO_COLOR: "1" }, true)).toBe(false)
    expect(plain("red", "x")).toBe("x")
    expect(createPaint(true)("red", "x")).toBe("\u001b[31mx\u001b[39m")
  })

  test(promised("install.E3", "the agent's steps flow, wrap at the width and are cut by compactions"), () => {
    const written: string[] = []
    const { show, end } = createProgress(
      (more) => void written.push(more),
      plain,
      (number) => `summary ${number}`,
    )
    const steps = Array.from({ length: 9 }, (_, step) => `a step of the work ${step}`)
    for (const text of steps) show({ kind: "tool", sessionID: "", text })
    show({ kind: "compacted", sessionID: "", text: "" })
    show({ kind: "text", sessionID: "", text: "not shown" })
    show({ kind: "tool", sessionID: "", text: "after it" })
    end()
    const lines = written.join("").split("\n")
    expect(lines.filter((line) => line.length > WIDTH)).toEqual([])
    expect(lines.slice(-3)).toEqual(["   ▼ compaction 1  summary 1", "   after it", ""])
    expect(written.join("").match(/a step of the work \d/g)).toEqual(steps)
  })

  test(promised("install.E3", "what a request did not tell is marked in its column, the request named"), () => {
    const knowledge = { task: true, role: true, specification: true, definitionOfDone: true, constraint: true }
    const told = (["nothing", "compaction", "nothing"] as const).map((after) => ({
      after,
      conversation: "",
      knowledge: { ...knowledge, constraint: after === "nothing" },
    }))
    const rows = renderKnowledge(told, ["an empty summary"], plain)
    expect(rows[1]).toMatch(/^ {3}at the beginning .*✓ .*✓ .*✓ .*✓ .*✓$/)
    expect(rows[2]).toMatch(/^ {3}after an empty summary .*✓ .*✓ .*✓ .*✓ .*✗$/)
    expect(rows[3]).toMatch(/^ {3}after kill -9, in a new session .*✓$/)
    expect(rows[0]?.indexOf("constraint")).toBeLessThan(rows[2]?.indexOf("✗") ?? 0)
  })

  test(promised("start.A6", "where the work stood is quoted from the request, a line or two of each part"), () => {
    const log = ["Checkpoint: 5 of 5; next: verify", "Compaction 4: It."].map(
      (line) => `- 2026-01-02 03:04 UTC: ${line}`,
    )
    const request = `Task\n\n## The last handoff\nWritten now.\n\nIt.\n\n## Facts\n- more\n\n## Last lines of the log\n${log.join("\n")}`
    expect(renderStanding(request, plain).map((line) => line.trim())).toEqual([
      "last handoff │ Written now.",
      "│ It.",
      "log │ - 2026-01-02 03:04 UTC: Checkpoint: 5 of 5; next: verify",
    ])
  })

  test(promised("install.E3", "prog show is split into its parts, and what is left out is said"), () => {
    const specification = "Do it.\nLogs: are kept."
    const handoff = Array.from({ length: 20 }, (_, index) => `- line ${index}`).join("\n")
    const description = `${specification}\n\n<!-- baton:handoff -->\n${handoff}\n<!-- /baton:handoff -->`
    const logs = ["State: orient", "Compaction 1: It.", "a", "b", "c"].map((text) => `  [2026-01-02 03:04] ${text}`)
    const shown = `ID:          ts-1a2b3c\nType:        task\n\nDescription:\n${description}\n\nDefinition of Done:\nIt is done.\n\nLogs:\n${logs.join("\n")}`
    const lines = renderShow(shown, { description }, specification, plain)
    expect(lines.map((line) => line.trim()).filter((line) => !line.startsWith("│"))).toEqual([
      "task │ ID:          ts-1a2b3c",
      "specification │ Do it.",
      "handoff │ <!-- baton:handoff -->",
      "done when │ It is done.",
      "log │   ⋯ 3 more lines, the compactions above among them",
    ])
    expect(lines.join("\n")).toContain("│ Logs: are kept.")
    expect(lines.join("\n")).toMatch(/⋯ 18 more lines\n +│ <!-- \/baton:handoff -->/)
  })
})
