import { realpathSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { loadFiles, MAX_LINE_CHARACTERS, MAX_LINES, renderFileBlock } from "../../../.opencode/baton/handoff/files.ts"
import type { LineRange } from "../../../.opencode/baton/handoff/references.ts"
import { promised } from "../../requirements.ts"
import { forAll, temporaryFolder } from "../../support/unit.ts"

const render = (text: string, lines?: LineRange, encoding = "UTF-8") =>
  renderFileBlock({ absolutePath: "/p/a.ts", text, encoding, ...(lines ? { lines } : {}) })
const numbers = (count: number): string => Array.from({ length: count }, (_, index) => `line ${index + 1}`).join("\n")
const moreBeyond = (line: number) => `(File has more lines. Use 'offset' parameter to read beyond line ${line})`
const HEADER = "Called the Read tool with the following input: "

describe("a file's block", () => {
  test(
    promised("handoff.C2", "a file's block has the header, the numbered lines and the footer of the document"),
    () => {
      expect(render("first\n\nthird\n")).toEqual({
        header: `${HEADER}{"filePath":"/p/a.ts"}`,
        content: "<file>\n00001| first\n00002| \n00003| third\n(End of file - 3 lines)\n</file>",
      })
    },
  )

  test(promised("handoff.C2", "a file's block ends after 2,000 lines and says how to go on"), () => {
    const endOf = (lines: number) => render(numbers(lines)).content.split("\n").slice(-3)
    expect(endOf(MAX_LINES)).toEqual(["02000| line 2000", "(End of file - 2000 lines)", "</file>"])
    expect(endOf(MAX_LINES + 1)).toEqual(["02000| line 2000", moreBeyond(2_000), "</file>"])
  })

  test(
    promised(["handoff.C2", "handoff.E2"], "a file's block cuts a line after 2,000 characters, and none in half"),
    () => {
      const full = "x".repeat(MAX_LINE_CHARACTERS)
      expect(render(full).content).toContain(`00001| ${full}\n`)
      expect(render(`${full}x\nb`).content).toContain(`00001| ${full}...\n00002| b\n`)
      const { content } = render(`${"x".repeat(MAX_LINE_CHARACTERS - 1)}🎉🎉`)
      expect(content.isWellFormed()).toBe(true)
      expect(content).toContain("x...\n")
    },
  )

  test.each([
    [{ first: 3 }, 1, ["00003| line 3", moreBeyond(3)]],
    [{ first: 2, last: 4 }, 3, ["00002| line 2", "00003| line 3", "00004| line 4", moreBeyond(4)]],
    [{ first: 9, last: 50 }, 42, ["00009| line 9", "00010| line 10", "(End of file - 10 lines)"]],
    [{ first: 10, last: 10 }, 1, ["00010| line 10", "(End of file - 10 lines)"]],
    [{ first: 10, last: 9_000 }, 2_000, ["00010| line 10", "(End of file - 10 lines)"]],
  ])(promised("handoff.C2", "a file's block shows the range %j and no more"), (lines, limit, shown) => {
    expect(render(`${numbers(10)}\n`, lines)).toEqual({
      header: `${HEADER}${JSON.stringify({ filePath: "/p/a.ts", offset: lines.first, limit })}`,
      content: ["<file>", ...shown, "</file>"].join("\n"),
    })
  })

  test(
    promised("handoff.C2", "a file's block says that a range lies behind the end, and shows no more than 2,000 lines"),
    () => {
      expect(render(numbers(10), { first: 11, last: 20 }).content).toBe(
        "<file>\n(The file has only 10 lines.)\n</file>",
      )
      expect(render("", { first: 11 }).content).toBe("<file>\n(End of file - 0 lines)\n</file>")
      const { content } = render(numbers(5_000), { first: 11, last: 5_000 })
      expect(content.split("\n")).toHaveLength(MAX_LINES + 3)
      expect(content).toContain("read beyond line 2010)")
    },
  )

  test(promised("handoff.C2", "a file's block names an encoding other than UTF-8"), () => {
    expect(render("a", undefined, "Latin-1").content).toContain("00001| a\n(Read as Latin-1.)\n(End of file")
  })

  test(
    promised(["handoff.C2", "handoff.E2"], "a file's block shows a closing tag that cannot end it, in every block"),
    () => {
      const said =
        "(The closing tag of this block is shown as <\\/file where the file has it.)\n(End of file - 3 lines)"
      const block = `<file>\n00001| a <\\/file> <\\/FILE >\n00002| <\\/file\n00003| >\n${said}\n</file>`
      for (let again = 0; again < 3; again++) expect(render("a </file> </FILE >\n</file\n>").content).toBe(block)
      expect(render("<file>\n").content).not.toContain("closing tag")
    },
  )

  test(promised(["handoff.C2", "handoff.E2"], "a file's block holds for any text and range"), () => {
    const piece = fc.oneof(fc.string(), fc.constantFrom("\n", "\r\n", "\r", "</file>", "\u2028"))
    const text = fc.array(piece, { maxLength: 30 })
    const range = fc.option(fc.tuple(fc.integer({ min: 1, max: 30 }), fc.nat({ max: 30 })), { nil: undefined })
    forAll(2_000, [text, range], (pieces, chosen) => {
      const lines = chosen && { first: chosen[0], last: chosen[0] + chosen[1] }
      const { header, content } = render(pieces.join(""), lines)
      expect(JSON.parse(header.slice(HEADER.length))).toMatchObject({ filePath: "/p/a.ts" })
      expect(content.match(/<\/file/gi)).toHaveLength(1)
      const all = pieces.join("").replace(/(?:\r\n|\r|\n)$/, "")
      const count = pieces.join("") === "" ? 0 : all.split(/\r\n|\r|\n/).length
      const shown = content.split("\n").filter((line) => /^\d{5}\| /.test(line))
      const expected = lines ? Math.max(0, Math.min(lines.last, count) - lines.first + 1) : count
      expect(shown).toHaveLength(expected)
    })
  })
})

const setUp = () => {
  const root = realpathSync(temporaryFolder())
  const write = (path: string, content = "one\n"): void => writeFileSync(join(root, path), content)
  const load = (paths: readonly string[]) => {
    const references = paths.map((path) => ({ path, written: path }))
    return loadFiles({ root, base: root }, references, { budget: { maxFiles: 2, maxBytes: 1024 } })
  }
  return { write, load }
}

test(promised(["handoff.C4", "handoff.E2"], "what is beyond the budget is not looked at"), async () => {
  const { write, load } = setUp()
  for (const name of ["a.ts", "b.ts", "c.ts"]) write(name)
  const { references, leftOut } = await load(["a.ts", "b.ts", "c.ts", "gone.ts", "@alice"])
  expect(references).toEqual([{ path: "a.ts" }, { path: "b.ts" }])
  const reason = "it is beyond the budget of 2 files"
  expect(leftOut).toEqual(["c.ts", "gone.ts"].map((path) => ({ path, reason })))
})

test(promised(["handoff.C4", "handoff.E2"], "files that do not fit are not all opened to find that out"), async () => {
  const { write, load } = setUp()
  const large = Array.from({ length: 20 }, (_, index) => `large${index}.ts`)
  for (const name of large) write(name, "x\n".repeat(2_000))
  write("small.ts")
  const early = await load([...large.slice(0, 3), "small.ts"])
  expect(early.references).toEqual([{ path: "small.ts" }])
  const { references, leftOut } = await load([...large, "small.ts"])
  expect(references).toEqual([])
  expect(leftOut.filter(({ reason }) => reason.endsWith(" KB"))).toHaveLength(8)
  expect(leftOut.filter(({ reason }) => reason.endsWith(" files"))).toHaveLength(13)
})
