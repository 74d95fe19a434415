import { spawnSync } from "node:child_process"
import { readFileSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { describe, expect, test } from "vitest"
import { promised, REQUIREMENTS } from "../requirements.ts"
import { sourceFiles } from "../support/files/source-files.ts"
import { temporaryFolder } from "../support/files/with-test.ts"
import { REPOSITORY } from "../support/opencode/opencode-binary.ts"

const testFiles = sourceFiles("test", ".test.ts").map((path) => ({
  path,
  text: readFileSync(join(REPOSITORY, path), "utf8"),
}))

const CITATION = /promised\(\s*(\[[^\]]*\]|"[^"]*")/g

const citedIn = (text: string): string[] =>
  [...text.matchAll(CITATION)].flatMap(([, ids]) => [...(ids ?? "").matchAll(/"([^"]+)"/g)].map(([, id]) => id ?? ""))

test(promised("repo.A4", "every requirement is cited by a test, and every cited one exists"), () => {
  const cited = new Set(testFiles.flatMap(({ text }) => citedIn(text)))
  expect([...cited].toSorted()).toEqual(Object.keys(REQUIREMENTS).toSorted())
})

/** The test files outside this folder that hold this. */
const filesWith = (forbidden: RegExp): string[] =>
  testFiles.filter(({ path, text }) => !path.includes("structure") && forbidden.test(text)).map(({ path }) => path)

test(promised("repo.A4", "no test is focused, put off, or waits for a fixed time"), () => {
  expect(filesWith(/\b(?:test|it|describe)\.(?:only|todo|skip)\(|\bsleep\(\d/)).toEqual([])
})

test("no test whose process is shared mocks a module, which others have loaded", () => {
  expect(filesWith(/\bvi\.(?:do)?[mM]ock\(/).filter((path) => path.startsWith("test/unit/"))).toEqual([])
})

const runScript = (name: string, ...args: string[]) => {
  const script = join(REPOSITORY, "scripts/support", name)
  const env = { ...process.env, BATON_SEED: "20261124", BATON_EFFORT: "10" }
  const { status, stdout, stderr } = spawnSync(process.execPath, [script, ...args], { encoding: "utf8", env })
  return { status, stdout, stderr }
}

describe("the results of a run", () => {
  const ids = Object.keys(REQUIREMENTS)
  const path = (): string => join(temporaryFolder(), "results.json")
  const tell = (report: string, ...args: string[]) => runScript("test-results.mjs", report, ...args)
  /** A report of one test a promise; that of the second promise came to this. */
  const report = (status: "passed" | "skipped" | "failed"): string => {
    const statusOf = (at: number) => (at === 1 ? status : "passed")
    const tests = ids.map((id, at) => ({ ancestorTitles: [], title: `${id} repo.A1: holds`, status: statusOf(at) }))
    const sums = { numPassedTests: ids.length, numFailedTests: 0, numPendingTests: 0, numTodoTests: 0 }
    const results = { ...sums, success: status !== "failed", testResults: [{ assertionResults: tests }] }
    const file = path()
    writeFileSync(file, JSON.stringify(results))
    return file
  }

  test(promised("repo.A4", "a whole run is green when each promise is kept, else it names one"), () => {
    expect(tell(report("passed"), "--whole")).toMatchObject({ status: 0, stderr: "" })
    const stderr = expect.stringContaining(ids[1] ?? "")
    expect(tell(report("skipped"), "--whole")).toMatchObject({ status: 1, stderr })
    const stdout = expect.stringContaining(`${ids.length - 1} of ${ids.length} promises`)
    expect(tell(report("skipped"))).toMatchObject({ status: 0, stdout })
  })

  test(promised("repo.A2", "a red run and one that was ended fail, and the latter says so"), () => {
    const red = report("failed")
    const screen = Array.from({ length: 99 }, (_, row) => `row ${row} of the screen`).join("\n")
    writeFileSync(join(dirname(red), "failures.md"), `# Failures\n\n## e2e: a file > a tour, set-up\n\n${screen}\n`)
    const shown = expect.stringMatching(/^failed: e2e: a file > a tour, set-up\n[\s\S]*row 98 of the screen\n/)
    expect(tell(red, "--whole")).toMatchObject({ status: 1, stdout: shown })
    const stderr = expect.stringMatching(/^error: no results: vitest was ended; [^\n]*\n$/)
    expect(tell(path())).toMatchObject({ status: 1, stderr })
  })
})

const night = (...args: string[]) => runScript("night.mjs", ...args)

const DAY_MS = 86_400_000

test(promised("repo.A6", "the stamp of the whole check is written by a green run alone, and old after 14 days"), () => {
  const folder = temporaryFolder()
  const stamp = join(folder, "proof", "night.json")
  const [tell, write] = [
    ["tell", stamp],
    ["write", stamp, "abc1234", join(folder, "results.json")],
  ] as const
  const report = (status: string) => {
    const tests = [{ name: "/a/test/unit/x.test.ts", assertionResults: [{ status }] }]
    writeFileSync(join(folder, "results.json"), JSON.stringify({ success: status === "passed", testResults: tests }))
  }
  expect(night(...tell).stdout).toContain("has not run yet")
  report("passed")
  expect(night(...write)).toMatchObject({ status: 0, stderr: "" })
  const written = JSON.parse(readFileSync(stamp, "utf8"))
  const projects = { unit: { passed: 1, failed: 0, skipped: 0 } }
  expect(written).toMatchObject({ commit: "abc1234", seed: 20261124, effort: 10, projects })
  report("failed")
  expect(night(...write)).toMatchObject({ status: 1, stderr: expect.stringContaining("not green") })
  for (const [days, old] of [
    [14, ""],
    [15, ": older than 14 days"],
  ] as const) {
    const date = new Date(Date.now() - days * DAY_MS).toISOString().slice(0, 10)
    writeFileSync(stamp, JSON.stringify({ ...written, date }))
    expect(night(...tell).stdout).toBe(`the whole check (--all) last ran on ${date} at abc1234${old}\n`)
  }
})
