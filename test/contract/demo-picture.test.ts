import { readFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { EXPECTED_COMPACTIONS } from "../../scripts/demonstration/claims.ts"
import { createPaint, wantsColour } from "../../scripts/demonstration/paint.ts"
import { createProgress, WIDTH } from "../../scripts/demonstration/progress.ts"
import { renderKnowledge, renderShow, renderStanding, renderTimeline } from "../../scripts/demonstration/report.ts"
import { SUMMARIES } from "../../scripts/demonstration/scripted-agent.ts"
import { TASK } from "../../scripts/demonstration/slug-project.ts"
import { parseColouredLine, renderTerminalPicture } from "../../scripts/demonstration/terminal-picture.ts"
import { promised } from "../requirements.ts"

const PICTURE = join(import.meta.dirname, "..", "..", "docs", "images", "demo.svg")
const plain = createPaint(false)
const coloured = createPaint(true)

/** The text a picture shows, a line for each row. */
const textIn = (svg: string): string => {
  const rows = new Map<string, string[]>()
  for (const [, y = "", text = ""] of svg.matchAll(/<text[^>]* y="([\d.]+)"[^>]*>([^<]*)<\/text>/g)) {
    rows.set(y, [...(rows.get(y) ?? []), text])
  }
  return [...rows.values()].map((words) => words.join(" ")).join("\n")
}

describe("the terminal picture", () => {
  test(promised("install.E3", "colours and their ends are read, columns counted in characters"), () => {
    const line = `${coloured.green("✓")}  ß ${coloured.bold(coloured.cyan("x"))}y`
    expect(parseColouredLine(line)).toEqual([
      { column: 0, text: "✓", styles: ["g"] },
      { column: 1, text: "  ß ", styles: [] },
      { column: 5, text: "x", styles: ["b", "c"] },
      { column: 6, text: "y", styles: [] },
    ])
  })

  test(promised("install.E3", "text cannot break out of the picture"), () => {
    const svg = renderTerminalPicture("./demo", '<!-- a --> & "b" </text><script>')
    expect(svg).toContain("&lt;!-- a --&gt; &amp; &quot;b&quot; &lt;/text&gt;&lt;script&gt;")
    expect(svg).not.toContain("<script")
  })

  test(promised("install.E3", "is light and dark, small, and needs nothing from elsewhere"), () => {
    const svg = readFileSync(PICTURE, "utf8")
    expect(svg).toContain("prefers-color-scheme:dark")
    expect(Buffer.byteLength(svg)).toBeLessThan(100_000)
    expect(svg.replace('xmlns="http://www.w3.org/2000/svg"', "")).not.toMatch(/https?:|href|url\(|@import|@font-face/)
    expect(Number(/ width="(\d+)"/.exec(svg)?.[1])).toBeLessThanOrEqual(860)
  })

  test(promised("install.E3", "shows a run of the demo as it is now, with every claim held"), () => {
    const text = textIn(readFileSync(PICTURE, "utf8"))
    for (const { kind, shown } of SUMMARIES) {
      expect(text).toContain(kind)
      expect(text).toContain(shown.replaceAll('"', "&quot;"))
    }
    expect(text).toContain(`went through ${EXPECTED_COMPACTIONS} compactions`)
    expect(text).toContain(TASK.title)
    expect(text).toContain("Every claim holds.")
    expect(text).toContain("after kill -9, in a new session")
    expect(text).not.toMatch(/✗ (?:Each|After)/)
    expect(text.match(/^✓ /gm)).toHaveLength(8)
  })
})

describe("the demo's output", () => {
  test(promised("install.E3", "is coloured on a terminal or by force, and never against NO_COLOR"), () => {
    expect(wantsColour({}, true)).toBe(true)
    expect(wantsColour({}, false)).toBe(false)
    expect(wantsColour({ TERM: "dumb" }, true)).toBe(false)
    expect(wantsColour({ FORCE_COLOR: "1" }, false)).toBe(true)
    expect(wantsColour({ FORCE_COLOR: "1", NO_COLOR: "1" }, true)).toBe(false)
    expect(plain.red("x")).toBe("x")
  })

  test(promised("install.E3", "the agent's steps flow, wrap at the width and are cut by compactions"), () => {
    let text = ""
    const progress = createProgress(
      (more) => {
        text += more
      },
      plain,
      (number) => `summary ${number}`,
    )
    for (let step = 0; step < 9; step++)
      progress.show({ kind: "tool", sessionID: "", label: `a step of the work ${step}` })
    progress.show({ kind: "compacted", sessionID: "" })
    progress.show({ kind: "text", sessionID: "", text: "not shown" })
    progress.show({ kind: "tool", sessionID: "", label: "after it" })
    progress.end()
    const lines = text.split("\n")
    expect(lines.every((line) => line.length <= WIDTH)).toBe(true)
    expect(lines.slice(-3)).toEqual(["   ▼ compaction 1  summary 1", "   after it", ""])
    expect(text.match(/a step of the work \d/g)).toHaveLength(9)
  })

  test(promised("install.E3", "what a request did not tell is marked in its column, the request named"), () => {
    const knowledge = { task: true, role: true, specification: true, definitionOfDone: true, constraint: true }
    const told = (["nothing", "compaction", "nothing"] as const).map((after) => ({
      after,
      conversation: "",
      knowledge,
    }))
    told[1] = { after: "compaction", conversation: "", knowledge: { ...knowledge, constraint: false } }
    const rows = renderKnowledge(told, ["an empty summary"], plain)
    expect(rows[1]).toMatch(/^ {3}at the beginning .*✓ .*✓ .*✓ .*✓ .*✓$/)
    expect(rows[2]).toMatch(/^ {3}after an empty summary .*✓ .*✓ .*✓ .*✓ .*✗$/)
    expect(rows[3]).toMatch(/^ {3}after kill -9, in a new session .*✓$/)
    expect(rows[0]?.indexOf("constraint")).toBeLessThan(rows[2]?.indexOf("✗") ?? 0)
    expect(renderTimeline([], plain)).toEqual(["   no compaction is recorded"])
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
    const lines = renderShow(shown, { id: "ts-1a2b3c", status: "open", description, logs: [] }, specification, plain)
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
