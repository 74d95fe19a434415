import { existsSync, readFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { describe, expect, test } from "vitest"
import { promised } from "../requirements.ts"
import { sourceFiles } from "../support/files/source-files.ts"
import { REPOSITORY } from "../support/opencode/opencode-binary.ts"

const documents = [
  "README.md",
  "AGENTS.md",
  "CHANGELOG.md",
  ...sourceFiles("docs", ".md"),
  ...sourceFiles("prompts", ".md"),
]
const LINK = /\]\(([^)#\s]+)(?:#[^)]*)?\)/g

describe("the documents", () => {
  test.each(documents)(promised("repo.A1", "every link of %s leads to a file that is there"), (path) => {
    const text = readFileSync(join(REPOSITORY, path), "utf8")
    const targets = [...text.matchAll(LINK)]
      .map(([, target]) => target ?? "")
      .filter((target) => !/^[a-z]+:/.test(target))
    const missing = targets.filter((target) => !existsSync(join(REPOSITORY, dirname(path), target)))
    expect(missing).toEqual([])
  })

  test(promised("repo.A1", "README opens with what Baton does, a picture of it, and the two commands"), () => {
    const lines = readFileSync(join(REPOSITORY, "README.md"), "utf8").split("\n")
    const at = (part: string) => lines.findIndex((line) => line.includes(part))
    expect(lines.length).toBeLessThan(200)
    expect(at("keeps the task")).toBeLessThan(at("docs/images/demo.svg"))
    expect(at("docs/images/demo.svg")).toBeLessThan(at("./scripts/demo"))
    expect(at("./scripts/install")).toBeLessThan(30)
  })

  test(promised("learning.E3", "session learning has a page, a section in README, and a check of doctor"), () => {
    const read = (path: string): string => readFileSync(join(REPOSITORY, path), "utf8")
    expect(read("docs/learning.md")).toContain("baton learned")
    expect(read("README.md")).toContain("## Session learning")
    expect(read("README.md")).toContain("](docs/learning.md)")
    expect(read("docs/doctor.md")).toContain("| `learning` |")
  })

  test(
    promised("live-state.C2", "the page has a picture in light and dark, and a place in README and its page"),
    () => {
      const read = (path: string): string => readFileSync(join(REPOSITORY, path), "utf8")
      for (const [path, folder] of [
        ["README.md", "docs/images/"],
        ["docs/live-state.md", "images/"],
      ] as const) {
        expect(read(path)).toContain(`src="${folder}observe-light.png"`)
        expect(read(path)).toContain(`srcset="${folder}observe-dark.png"`)
        expect(read(path)).toContain("observe --web")
      }
      for (const scheme of ["light", "dark"])
        expect(existsSync(join(REPOSITORY, `docs/images/observe-${scheme}.png`)), scheme).toBe(true)
    },
  )

  test(
    promised("handoff.E3", "/handoff has a page with the TUI on it, a section in README, and a check of doctor"),
    () => {
      const read = (path: string): string => readFileSync(join(REPOSITORY, path), "utf8")
      expect(read("docs/handoff.md")).toContain("](images/handoff.svg)")
      expect(read("docs/images/handoff.svg")).toContain("Continuing work from session")
      expect(read("README.md")).toContain("](docs/handoff.md)")
      expect(read("docs/doctor.md")).toContain("| `handoffs` |")
    },
  )

  test.each([
    ["docs/live-state-conformance.md", 30],
    ["docs/security.md", 20],
  ])(
    promised(["live-state.D2", "proof.D1"], "each row of the tables in %s names tests that are there"),
    (path, expected) => {
      const rows = readFileSync(join(REPOSITORY, path), "utf8")
        .split("\n")
        .filter((line) => line.startsWith("| ") && !/^\| (?:Rule|Fault|Claim|Where from) \|/.test(line))
      const tests = sourceFiles("test", ".ts")
        .filter((file) => !file.startsWith("test/structure/"))
        .map((file) => readFileSync(join(REPOSITORY, file), "utf8"))
        .join("\n")
      const cited = rows.map((row) =>
        [...(row.split("|").at(-2) ?? "").matchAll(/`([^`]+)`/g)].map(([, name]) => name ?? ""),
      )
      expect(rows.length).toBeGreaterThan(expected)
      expect(rows.filter((_, index) => cited[index]?.length === 0)).toEqual([])
      expect(cited.flat().filter((name) => !tests.includes(name))).toEqual([])
    },
  )
})
