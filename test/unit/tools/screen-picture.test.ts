import { readFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { parseScreen, renderTerminal } from "../../../scripts/demonstration/terminal-picture.ts"
import { promised } from "../../requirements.ts"
import { REPOSITORY } from "../../support/opencode/opencode-binary.ts"

const sgr = (codes: string): string => `\u001b[${codes}m`

describe("a terminal's screen", () => {
  test.each<[string, object]>([
    ["1;38;2;127;216;143", { isBold: true, colour: "#7fd88f" }],
    ["48;2;20;20;20", { background: "#141414" }],
    ["32;41", { colour: "#3fb950", background: "#ff7b72" }],
    ["92;103", { colour: "#3fb950", background: "#d29922" }],
    ["38;5;9", { colour: "#ff7b72" }],
    ["31;1;22;39", { isBold: false, isFaint: false }],
    ["1;31;0", {}],
    ["2", { isFaint: true }],
    ["38;2;1;2;3;7", { colour: "#0a0a0a", background: "#010203" }],
    ["", {}],
  ])("has the style of the sequence %j", (codes, style) => {
    expect(parseScreen(`${sgr(codes)}x`)).toEqual([[{ column: 0, text: "x", style }]])
  })

  test("counts columns in characters, takes a style on to the next row, and ends with what it shows", () => {
    const red = { colour: "#ff7b72" }
    expect(parseScreen(`┃ ä${sgr("31")}x\ny${sgr("0")}z\n   \n`)).toEqual([
      [
        { column: 0, text: "┃ ä", style: {} },
        { column: 3, text: "x", style: red },
      ],
      [
        { column: 0, text: "y", style: red },
        { column: 1, text: "z", style: {} },
      ],
    ])
  })
})

test("a picture has words where their columns are, shapes that meet, backgrounds, and no markup of the screen's", () => {
  const svg = renderTerminal("A picture", {
    caption: "A <terminal>",
    screen: `ab  <b>&\n   ██${sgr("48;2;30;30;30")}x`,
  })
  expect(svg).toContain('x="0" y="13" fill="#eeeeee" textLength="16">ab<')
  expect(svg).toContain('x="32" y="13" fill="#eeeeee" textLength="32">&lt;b&gt;&amp;<')
  expect(svg).toContain('<rect x="24" y="18" width="16" height="18" fill="#eeeeee"/>')
  expect(svg).toContain('<rect x="40" y="18" width="8" height="18" fill="#1e1e1e"/>')
  expect(svg).toContain("A &lt;terminal&gt;")
})

describe.each(["demo.svg", "handoff.svg"])("docs/images/%s", (name) => {
  const svg = readFileSync(join(REPOSITORY, "docs", "images", name), "utf8")

  test(promised(["handoff.E3", "install.E3"], "is small, needs nothing from elsewhere, names no user's folder"), () => {
    expect(Buffer.byteLength(svg)).toBeLessThan(100_000)
    expect(svg.replace('xmlns="http://www.w3.org/2000/svg"', "")).not.toMatch(/https?:|href|url\(|@import|@font-face/)
    expect(svg).not.toMatch(/\/(?:home|root|work|Users|var|private)\//)
    expect(Number(/ width="(\d+)"/.exec(svg)?.[1])).toBeLessThanOrEqual(860)
  })
})

test(
  promised("handoff.E3", "the picture of /handoff shows the draft with its toast, and the message it became"),
  () => {
    const svg = readFileSync(join(REPOSITORY, "docs", "images", "handoff.svg"), "utf8")
    for (const text of ["Handoff Ready", "Continuing work from session", "gathered by program", "~/my-project"])
      expect(svg).toContain(text)
  },
)
