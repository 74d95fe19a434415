import { existsSync, readFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { describe, expect, test } from "vitest"
import { promised } from "../requirements.ts"
import { sourceFiles } from "../support/files/source-files.ts"
import { REPOSITORY } from "../support/opencode/opencode-binary.ts"

const read = (path: string): string => readFileSync(join(REPOSITORY, path), "utf8")
const folders = ["docs", "prompts"].flatMap((folder) => sourceFiles(folder, ".md"))
const documents = ["README.md", "AGENTS.md", "CHANGELOG.md", ...folders]
const LINK = /\]\(([^)#\s]+)(?:#[^)]*)?\)/g

describe("the documents", () => {
  test.each(documents)(promised("repo.A1", "every link of %s leads to a file that is there"), (path) => {
    const targets = [...read(path).matchAll(LINK)]
      .map(([, target]) => target ?? "")
      .filter((target) => !/^[a-z]+:/.test(target))
    const missing = targets.filter((target) => !existsSync(join(REPOSITORY, dirname(path), target)))
    expect(missing).toEqual([])
  })

  test(promised("repo.A1", "README opens with what Baton does, a picture of it, and the two commands"), () => {
    const lines = read("README.md").split("\n")
    const at = (part: string) => lines.findIndex((line) => line.includes(part))
    expect(lines.length).toBeLessThan(200)
    expect(at("keeps the task")).toBeLessThan(at("docs/images/demo.svg"))
    expect(at("docs/images/demo.svg")).toBeLessThan(at("./scripts/demo"))
    expect(at("./scripts/install")).toBeLessThan(30)
  })

  test.each([
    ["docs/learning.md", "baton learned"],
    ["README.md", "## Session learning"],
    ["README.md", "](docs/learning.md)"],
    ["docs/doctor.md", "| `learning` |"],
    ["docs/handoff.md", "](images/handoff.svg)"],
    ["docs/images/handoff.svg", "Continuing work from session"],
    ["README.md", "](docs/handoff.md)"],
    ["docs/doctor.md", "| `handoffs` |"],
  ])(promised(["learning.E3", "handoff.E3"], "%s tells of the feature: %s"), (path, part) => {
    expect(read(path)).toContain(part)
  })

  test.each([
    ["README.md", "docs/images/"],
    ["docs/live-state.md", "images/"],
  ])(promised("live-state.C2", "%s shows the page in light and dark"), (path, folder) => {
    for (const part of [`src="${folder}observe-light.png"`, `srcset="${folder}observe-dark.png"`, "observe --web"])
      expect(read(path)).toContain(part)
    for (const scheme of ["light", "dark"])
      expect(existsSync(join(REPOSITORY, `docs/images/observe-${scheme}.png`)), scheme).toBe(true)
  })

  test.each([
    ["docs/live-state-conformance.md", 30],
    ["docs/security.md", 20],
  ])(
    promised(["live-state.D2", "proof.D1"], "each row of the tables in %s names tests that are there"),
    (path, expected) => {
      const rows = read(path)
        .split("\n")
        .filter((line) => line.startsWith("| ") && !/^\| (?:Rule|Fault|Claim|Where from) \|/.test(line))
      const tests = sourceFiles("test", ".ts")
        .filter((file) => !file.startsWith("test/structure/"))
        .map(read)
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
