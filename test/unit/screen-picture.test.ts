import { readFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { renderScreens } from "../../scripts/demonstration/screen-picture.ts"
import { parseScreen } from "../../scripts/demonstration/terminal-screen.ts"
import { promised } from "../requirements.ts"
import { REPOSITORY } from "../support/opencode-binary.ts"

const sgr = (codes: string): string => `\u001b[${codes}m`

const render = (screen: string): string =>
  renderScreens("A picture", [{ caption: "A terminal", screen }], { columns: 20, rows: 2 })

describe("a terminal's screen", () => {
  test.each<[string, object]>([
    ["1;38;2;127;216;143", { bold: true, colour: "#7fd88f" }],
    ["48;2;10;10;10", { background: "#0a0a0a" }],
    ["38;5;9", { colour: "#ff0000" }],
    ["38;5;208", { colour: "#ff8700" }],
    ["48;5;244", { background: "#808080" }],
    ["32;41", { colour: "#00cd00", background: "#cd0000" }],
    ["92;103", { colour: "#00ff00", background: "#ffff00" }],
    ["31;1;22;39", {}],
    ["1;31;0", {}],
    ["2", { faint: true }],
    ["38;2;1;2;3;7", { colour: "#0a0a0a", background: "#010203" }],
    ["", {}],
  ])("has the style of the sequence %j", (codes, style) => {
    expect(parseScreen(`${sgr(codes)}x`)).toEqual([[{ column: 0, text: "x", style }]])
  })

  test("counts columns in characters and takes a style on to the next row", () => {
    expect(parseScreen(`┃ ä${sgr("31")}x\ny${sgr("0")}z\n`)).toEqual([
      [
        { column: 0, text: "┃ ä", style: {} },
        { column: 3, text: "x", style: { colour: "#cd0000" } },
      ],
      [
        { column: 0, text: "y", style: { colour: "#cd0000" } },
        { column: 1, text: "z", style: {} },
      ],
    ])
  })
})

describe("the picture of a screen", () => {
  test("puts words where their columns are, and escapes what would be markup", () => {
    const svg = render("ab  <b>&\n   x")
    expect(svg).toContain('<text x="0" y="13" fill="#eeeeee" textLength="16">ab</text>')
    expect(svg).toContain('<text x="32" y="13" fill="#eeeeee" textLength="32">&lt;b&gt;&amp;</text>')
    expect(svg).toContain('<text x="24" y="31" fill="#eeeeee">x</text>')
  })

  test("draws what has to meet as one shape, over rows and columns", () => {
    const svg = render("┃██\n┃██")
    expect(svg.match(/fill="#eeeeee"/g)).toHaveLength(2)
    expect(svg).toContain('<rect x="3" y="0" width="2" height="36" fill="#eeeeee"/>')
    expect(svg).toContain('<rect x="8" y="0" width="16" height="36" fill="#eeeeee"/>')
  })

  test("draws a background once, and not where it is the terminal's own", () => {
    const row = `${sgr("48;2;30;30;30")}ab${sgr("48;2;10;10;10")}cd${sgr("0")}`
    const svg = render(`${row}\n${row}`)
    expect(svg).toContain('<rect x="0" y="0" width="16" height="36" fill="#1e1e1e"/>')
    expect(svg.match(/#0a0a0a/g)).toHaveLength(1)
  })
})

describe("the picture of /handoff", () => {
  const svg = readFileSync(join(REPOSITORY, "docs", "images", "handoff.svg"), "utf8")

  test(promised("handoff.E3", "shows the draft with its toast, and the message it became"), () => {
    for (const text of ["Handoff Ready", "Continuing work from session", "gathered by program", "~/my-project"]) {
      expect(svg).toContain(text)
    }
  })

  test(promised("handoff.E3", "is small, needs nothing from elsewhere and names no folder of a machine"), () => {
    expect(Buffer.byteLength(svg)).toBeLessThan(100_000)
    expect(svg.replace('xmlns="http://www.w3.org/2000/svg"', "")).not.toMatch(/https?:|href|url\(|@import|@font-face/)
    expect(svg).not.toMatch(/\/(?:home|root|tmp|work|Users|var|private)\//)
    expect(Number(/ width="(\d+)"/.exec(svg)?.[1])).toBeLessThanOrEqual(860)
  })
})
