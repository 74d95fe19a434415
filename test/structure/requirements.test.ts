import { spawnSync } from "node:child_process"
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
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
    expect(tell(report("failed"), "--whole").status).toBe(1)
    const stderr = expect.stringMatching(/^error: no results: vitest was ended; [^\n]*\n$/)
    expect(tell(path())).toMatchObject({ status: 1, stderr })
  })
})

const night = (...args: string[]) => runScript("night.mjs", ...args)

const dayBefore = (days: number): string => new Date(Date.now() - days * 86_400_000).toISOString().slice(0, 10)

/** A report of vitest's in which each file has one test that came to this. */
const writeReport = (path: string, statuses: Record<string, string>): string => {
  const testResults = Object.entries(statuses).map(([name, status]) => ({ name, assertionResults: [{ status }] }))
  const success = !Object.values(statuses).includes("failed")
  writeFileSync(path, JSON.stringify({ success, testResults }))
  return path
}

describe("the stamp of the whole check", () => {
  test.each([
    [0, ""],
    [14, ""],
    [15, ": older than 14 days"],
  ])(promised("repo.A6", "after %i days a run says when it was%s"), (days, old) => {
    const stamp = join(temporaryFolder(), "night.json")
    expect(night("tell", stamp).stdout).toContain("has not run yet")
    writeFileSync(stamp, JSON.stringify({ date: dayBefore(days), commit: "abc1234" }))
    const said = `the whole check (--all) last ran on ${dayBefore(days)} at abc1234${old}\n`
    expect(night("tell", stamp)).toEqual({ status: 0, stdout: said, stderr: "" })
  })

  test(promised("repo.A6", "it holds commit, date, seed, and what each project came to"), () => {
    const folder = temporaryFolder()
    const stamp = join(folder, "proof", "night.json")
    const unit = { "/a/test/unit/x.test.ts": "passed" }
    const e2e = { "/a/test/e2e/x.test.ts": "pending", "/a/test/e2e/y.test.ts": "passed" }
    const whole = writeReport(join(folder, "test-results.json"), { ...unit, ...e2e })
    const between = writeReport(join(folder, "matrix-results.json"), { "/a/test/e2e/x.test.ts": "passed" })
    expect(night("write", stamp, "abc1234", whole, between)).toMatchObject({ status: 0, stderr: "" })
    expect(JSON.parse(readFileSync(stamp, "utf8"))).toEqual({
      ...{ commit: "abc1234", date: dayBefore(0), seed: 20261124, effort: 10 },
      projects: {
        ...{ unit: { passed: 1, failed: 0, skipped: 0 }, e2e: { passed: 1, failed: 0, skipped: 1 } },
        "matrix e2e": { passed: 1, failed: 0, skipped: 0 },
      },
    })
    const before = readFileSync(stamp, "utf8")
    const report = writeReport(join(folder, "test-results.json"), { "/a/test/unit/x.test.ts": "failed" })
    const stderr = expect.stringContaining("not green")
    expect(night("write", stamp, "abc1234", report)).toMatchObject({ status: 1, stderr })
    expect(readFileSync(stamp, "utf8"), "a red report leaves it as it is").toBe(before)
  })
})
