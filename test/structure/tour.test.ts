import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { ANSWERS, CORRECTION, SAID, startMessage, TASK } from "../../scripts/demonstration/tour/story.ts"
import { promised } from "../requirements.ts"
import { withoutIds } from "../support/ledger/quoted-commands.ts"
import { REPOSITORY } from "../support/opencode/opencode-binary.ts"

const read = (path: string): string => readFileSync(join(REPOSITORY, path), "utf8")
const page = read("docs/tour.md")
const pictures = readdirSync(join(REPOSITORY, "docs/images")).filter((name) => name.startsWith("tour-"))
const svgs = pictures.filter((name) => name.endsWith(".svg"))

/** What a picture shows, without what differs from run to run. */
const textOf = (svg: string): string =>
  withoutIds([...read(`docs/images/${svg}`).matchAll(/<text[^>]*>([^<]*)<\/text>/g)].map(([, text]) => text).join("\n"))

describe("the page of the tour", () => {
  test(promised("tour.B1", "is linked where a newcomer looks, and shows every picture of the walk"), () => {
    expect(read("README.md")).toContain("](docs/tour.md)")
    expect(read("docs/how-it-works.md")).toContain("](tour.md)")
    const shown = [...page.matchAll(/images\/(tour-[\w.-]+)/g)].map(([, name]) => name ?? "")
    expect([...new Set(shown)].sort()).toEqual(pictures.sort())
    for (const scheme of ["light", "dark"]) expect(pictures).toContain(`tour-page-${scheme}.png`)
  })

  test(promised("tour.B1", "has its user say what the user of the walk says"), () => {
    const quoted = [...page.matchAll(/^```text\n([\s\S]*?)\n```$/gm)].flatMap(([, block = ""]) => block.split("\n"))
    const { review, mend, take, test: tests, goal } = SAID
    const said = [startMessage("ts-000000"), CORRECTION, review, mend, take, tests, `/handoff ${goal}`]
    expect(quoted.map(withoutIds)).toEqual(said.flatMap((text) => text.split("\n")).map(withoutIds))
  })
})

describe("the pictures of the tour", () => {
  test.each<[string, readonly string[]]>([
    ["tour-install.svg", ["Files:", "0 broken, 0 warnings"]],
    ["tour-work.svg", [ANSWERS.corrected, SAID.review, "pass_over [subagent=audit", ANSWERS.reviewed]],
    ["tour-tests.svg", ["Compaction", "All four tests pass. That is ts-ID."]],
    ["tour-handoff.svg", ["Handoff Ready", "Continuing work from session", "Task: ts-ID"]],
    ["tour-observe.svg", ["opencode-my-project", "busy", TASK.title, "Handoff to SESSION"]],
    ["tour-ledger.svg", ["Compaction 3: the summary was empty", CORRECTION, "build → audit"]],
  ])(promised("tour.B1", "%s shows what the page says of it"), (name, parts) => {
    const text = textOf(name).replaceAll(/\s+/g, " ")
    for (const part of parts) expect(text).toContain(part)
  })

  test.each(svgs)(
    promised("tour.B1", "%s is small, needs nothing from elsewhere and names no folder of a machine"),
    (name) => {
      const svg = read(`docs/images/${name}`)
      expect(Buffer.byteLength(svg)).toBeLessThan(100_000)
      expect(svg.replace('xmlns="http://www.w3.org/2000/svg"', "")).not.toMatch(/https?:|href|url\(|@import|@font-face/)
      expect(svg).not.toMatch(/\/(?:home|root|tmp|work|Users|var|private)\//)
      expect(Number(/ width="(\d+)"/.exec(svg)?.[1])).toBeLessThanOrEqual(860)
    },
  )
})
