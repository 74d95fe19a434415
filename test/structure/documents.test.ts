import { existsSync, readdirSync, readFileSync, statSync } from "node:fs"
import { dirname, join } from "node:path"
import { describe, expect, test } from "vitest"
import { ANSWERS, CORRECTION, SAID, startMessage, TASK } from "../../scripts/demonstration/tour/story.ts"
import { promised } from "../requirements.ts"
import { sourceFiles } from "../support/files/source-files.ts"
import { withoutIds } from "../support/ledger/quoted-commands.ts"
import { REPOSITORY } from "../support/opencode/opencode-binary.ts"

const read = (path: string): string => readFileSync(join(REPOSITORY, path), "utf8")
const folders = ["docs", "prompts"].flatMap((folder) => sourceFiles(folder, ".md"))
const documents = ["README.md", "AGENTS.md", "CHANGELOG.md", "RELEASING.md", "SECURITY.md", ...folders]
/** A link of Markdown, or a picture of an HTML tag. */
const LINK = /(?:\]\(|src(?:set)?=")([^)#"\s]+)(?:#[^)]*)?[)"]/g

describe("the documents", () => {
  test.each(documents)(promised("repo.A1", "every link of %s leads to a file that is there"), (path) => {
    const targets = [...read(path).matchAll(LINK)].map(([, target = ""]) => target)
    const isMissing = (target: string) => !existsSync(join(REPOSITORY, dirname(path), target))
    expect(targets.filter((target) => !/^[a-z]+:/.test(target) && isMissing(target))).toEqual([])
  })

  test(promised("repo.A1", "AGENTS.md gives each room an order to be read in, of files that are there"), () => {
    const orders = [...read("AGENTS.md").matchAll(/^- ([a-z-]+): (`.*)$/gm)]
    const rooms = ["task", "compaction", "handoff", "live-state", "pass-over", "learning", "ledger", "work"]
    expect(new Set(orders.map(([, room]) => room))).toEqual(new Set(rooms))
    for (const [, room = "", order = ""] of orders)
      for (const [, path = ""] of order.matchAll(/`([^`]+)`/g))
        expect(existsSync(join(REPOSITORY, ".opencode/baton", room, path)), `${room}/${path}`).toBe(true)
  })

  test(promised(["package.A1", "package.A7"], "README begins with what Baton does, a picture, the commands"), () => {
    const [beginning = ""] = read("README.md").split("\n## ")
    const parts = ["keeps the task", "docs/images/demo.svg", "./scripts/demo", "./scripts/install"]
    const places = parts.map((part) => beginning.indexOf(part))
    expect(places).not.toContain(-1)
    expect(places).toEqual(places.toSorted((a, b) => a - b))
    for (const part of ["npx baton-opencode init", "1.2.15 to 1.18.33 and 2.0.15"]) expect(beginning).toContain(part)
  })

  const NEEDS_1 = /opencode-ai@1\b|needs? (?:the|its) 1\.x|>=[\d.]+ <2"/
  const shown = ["README.md", "package.json", "scripts/lib/opencode.mjs", "docs/installation.md", "docs/versions.md"]
  test.each(shown)(
    promised("package.A7", "%s says on which versions Baton is run, and of none that it needs 1.x"),
    (path) => {
      expect(read(path)).not.toMatch(NEEDS_1)
      if (path !== "package.json") expect(read(path)).toContain("1.2.15 to 1.18.33 and 2.0.15")
    },
  )

  test(promised("package.D1", "the package says on which versions it is loaded"), () => {
    const { engines, exports, files } = JSON.parse(read("package.json"))
    expect(engines.opencode).toBe(">=1.2.15 <2 || >=2.0.15 <3")
    for (const path of Object.values<string>(exports)) expect(existsSync(join(REPOSITORY, path)), path).toBe(true)
    expect(files).toContain(exports["./server"].slice(2))
  })

  test(promised("words.D1", "README's first commands are there, and none of them needs the npm package"), () => {
    const [, block = ""] = /```sh\n([\s\S]*?)```/.exec(read("README.md")) ?? []
    const commands = block.split(/\n|&&/).flatMap((line) => line.replace(/#.*/, "").trim() || [])
    expect(commands.slice(0, 2)).toEqual(["git clone <this repository> baton", "cd baton"])
    const own = commands.slice(2).map((command) => command.split(/\s+/))
    expect(own.map(([program]) => program)).toEqual(["./scripts/demo", "./scripts/install"])
    for (const [program = "", ...args] of own) {
      expect(statSync(join(REPOSITORY, program)).mode & 0o111, program).not.toBe(0)
      const options = args.filter((arg) => arg.startsWith("-"))
      const usage = read(program === "./scripts/install" ? "scripts/lib/install.mjs" : program)
      for (const option of options) expect(usage).toContain(`  ${option}  `)
    }
  })

  test.each([
    ["README.md", ["## Session learning", "](docs/learning.md)", "](docs/handoff.md)", "observe --web"]],
    ["README.md", ['src="docs/images/observe-light.png"', 'srcset="docs/images/observe-dark.png"']],
    ["docs/doctor.md", ["| `learning` |", "| `handoffs` |"]],
    ["docs/handoff.md", ["](images/handoff.svg)"]],
    ["docs/images/handoff.svg", ["Continuing work from session"]],
    ["docs/learning.md", ["baton learned"]],
    ["docs/live-state.md", ['src="images/observe-light.png"', 'srcset="images/observe-dark.png"', "observe --web"]],
  ])(promised(["learning.E3", "handoff.E3", "live-state.C2"], "%s tells of the features: %j"), (path, parts) => {
    for (const part of parts) expect(read(path)).toContain(part)
  })

  test.each([
    ["docs/live-state-conformance.md", 30],
    ["docs/security.md", 20],
  ])(promised(["live-state.D2", "proof.D1"], "each row of %s names tests that are there"), (path, expected) => {
    const isRow = (line: string) => line.startsWith("| ") && !/^\| (?:Rule|Fault|Claim|Where from) \|/.test(line)
    const rows = read(path).split("\n").filter(isRow)
    const files = sourceFiles("test", ".ts").filter((file) => !file.startsWith("test/structure/"))
    const tests = files.map(read).join("\n")
    const cited = rows.map((row) => [...(row.split("|").at(-2) ?? "").matchAll(/`([^`]+)`/g)].map(([, name]) => name))
    expect(rows.length).toBeGreaterThan(expected)
    expect(rows.filter((_, index) => cited[index]?.length === 0)).toEqual([])
    expect(cited.flat().filter((name) => !tests.includes(name ?? ""))).toEqual([])
  })
})

const page = read("docs/tour.md")
const images = readdirSync(join(REPOSITORY, "docs/images"))
const pictures = images.filter((name) => name.startsWith("tour-"))
const svgs = images.filter((name) => name.endsWith(".svg"))

/** A picture without the parts that differ from run to run. */
const textOf = (svg: string): string =>
  withoutIds([...read(`docs/images/${svg}`).matchAll(/<text[^>]*>([^<]*)<\/text>/g)].map(([, text]) => text).join("\n"))

describe("the page of the tour", () => {
  test(
    promised("tour.B1", "the page of the tour is linked where a newcomer looks, and shows every picture of the walk"),
    () => {
      expect(read("README.md")).toContain("](docs/tour.md)")
      expect(read("docs/how-it-works.md")).toContain("](tour.md)")
      const shown = [...page.matchAll(/images\/(tour-[\w.-]+)/g)].map(([, name]) => name ?? "")
      expect([...new Set(shown)].sort()).toEqual(pictures.sort())
      for (const scheme of ["light", "dark"]) expect(pictures).toContain(`tour-page-${scheme}.png`)
    },
  )

  test(promised("tour.B1", "the page of the tour has its user say what the user of the walk says"), () => {
    const quoted = [...page.matchAll(/^```text\n([\s\S]*?)\n```$/gm)].flatMap(([, block = ""]) => block.split("\n"))
    const { review, mend, take, test: tests, goal } = SAID
    const said = [startMessage("ts-000000"), CORRECTION, review, mend, take, tests, `/handoff ${goal}`]
    expect(quoted.map(withoutIds)).toEqual(said.flatMap((text) => text.split("\n")).map(withoutIds))
  })
})

describe("the pictures", () => {
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
    promised(["tour.B1", "handoff.E3", "install.E3"], "%s is small, names nothing from elsewhere"),
    (name) => {
      const svg = read(`docs/images/${name}`)
      expect(Buffer.byteLength(svg)).toBeLessThan(100_000)
      expect(svg.replace('xmlns="http://www.w3.org/2000/svg"', "")).not.toMatch(/https?:|href|url\(|@import|@font-face/)
      expect(svg).not.toMatch(/\/(?:home|root|tmp(?!\/baton-demo-)|work|Users|var|private)\//)
      expect(Number(/ width="(\d+)"/.exec(svg)?.[1])).toBeLessThanOrEqual(860)
    },
  )
})
